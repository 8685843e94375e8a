"""HTML elements as values. Texts and attribute values are always escaped."""

from __future__ import annotations

from html import escape


class Html(str):
    """Text that already is HTML."""

    __slots__ = ()


def element(name: str, *children: str, **attributes: str) -> Html:
    """An element. attributes: a trailing `_` of a name is removed, as in `class_`."""
    given = "".join(f' {key.rstrip("_")}="{escape(value)}"' for key, value in attributes.items())
    return Html(f"<{name}{given}>{join_html(*children)}</{name}>")


def join_html(*children: str) -> Html:
    """The pieces joined; text that is not HTML is escaped."""
    return Html("".join(child if isinstance(child, Html) else escape(child, quote=False) for child in children))
