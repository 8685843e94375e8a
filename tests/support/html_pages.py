"""Parses HTML pages: headings, tables, links, buttons, fields and text, by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Final

_VOID: Final = frozenset(("input", "meta", "link", "br", "img", "hr", "wbr"))


@dataclass
class Element:
    """An element with its attributes. children: elements and texts, in order."""

    tag: str
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Element | str] = field(default_factory=list)

    @property
    def text(self) -> str:
        """All text in the element, with single spaces."""
        return " ".join("".join(self._texts()).split())

    def all(self, *tags: str) -> Iterator[Element]:
        """The descendants with one of the tags, in order."""
        for child in self.children:
            if isinstance(child, Element):
                if child.tag in tags:
                    yield child
                yield from child.all(*tags)

    def _texts(self) -> Iterator[str]:
        for child in self.children:
            if isinstance(child, str):
                yield child
            else:
                yield from child._texts()


class _Parser(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open = [Element("")]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in _VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


class HtmlPage:
    """The element `main` of a page. Raises: AssertionError for elements that do not nest."""

    def __init__(self, html: str) -> None:
        parser = _Parser()
        parser.feed(html)
        assert len(parser.open) == 1, f"<{parser.open[-1].tag}> is not closed"
        (self.main,) = parser.open[0].all("main")

    @property
    def heading(self) -> str:
        """The only `h1`."""
        (heading,) = self.main.all("h1")
        return heading.text

    @property
    def links(self) -> dict[str, str]:
        """The URLs of links by their text."""
        return {
            link.attributes.get("aria-label", link.text): link.attributes.get("href", "") for link in self.main.all("a")
        }

    @property
    def buttons(self) -> list[str]:
        """The texts of buttons."""
        return [button.text for button in self.main.all("button")]

    @property
    def statuses(self) -> list[str]:
        """The texts with the role `status` or `alert`, which screen readers announce."""
        return [each.text for each in self.main.all("p", "div") if each.attributes.get("role") in ("status", "alert")]

    @property
    def fields(self) -> dict[str, Element]:
        """The controls of forms by label."""
        controls = {each.attributes.get("id", ""): each for each in self.main.all("input", "textarea", "select")}
        found: dict[str, Element] = {}
        for label in self.main.all("label"):
            inside = list(label.all("input", "textarea", "select"))
            found[label.text] = inside[0] if inside else controls[label.attributes["for"]]
        return found

    def table(self, name: str) -> list[list[str]]:
        """The rows of a table, without its head: the text of each cell."""
        (table,) = (each for each in self.main.all("table") if each.attributes.get("aria-label") == name)
        (body,) = table.all("tbody")
        return [[cell.text for cell in row.all("th", "td")] for row in body.all("tr")]

    def region(self, name: str) -> Element:
        """The section or list of the page with a heading."""
        headings = {each.attributes.get("id"): each.text for each in self.main.all("h2", "h3")}
        return next(
            each
            for each in self.main.all("section", "ul")
            if headings.get(each.attributes.get("aria-labelledby")) == name
        )


def sent_values(form: Element) -> dict[str, str]:
    """What a browser sends of a form that nobody touched, without buttons and files."""
    values: dict[str, str] = {}
    for control in form.all("input", "textarea", "select"):
        name, kind = control.attributes.get("name", ""), control.attributes.get("type", "text")
        if control.tag == "textarea":
            text = "".join(child for child in control.children if isinstance(child, str)).removeprefix("\n")
            values[name] = text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n")
        elif control.tag == "select":
            options = [option for option in control.all("option") if "selected" in option.attributes]
            # Without a value, an option has its text with single spaces.
            values[name] = options[0].attributes.get("value", options[0].text) if options else ""
        elif kind in ("text", "hidden") or (kind == "checkbox" and "checked" in control.attributes):
            values[name] = "".join(control.attributes.get("value", "").splitlines())
    return values
