"""Documents as HTML with marks for the stylesheet. All that a document has is escaped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Final

from markupsafe import Markup, escape

#: The name of the language by what a media type or a format begins with or contains.
_LANGUAGES: Final = (
    ("json", "json"),
    ("avro", "json"),
    ("openapi", "yaml"),
    ("asyncapi", "yaml"),
    ("yaml", "yaml"),
    ("proto", "protobuf"),
    ("graphql", "graphql"),
    ("xsd", "xml"),
    ("xml", "xml"),
)
_INDENT: Final = "  "


def highlight(text: str, media_type: str, format: str, *, is_plain: bool = False) -> Markup:
    """A text as HTML. JSON in one line gets line breaks. is_plain: without marks."""
    if "\n" not in text.strip() and _is_json(text):
        text = "".join(_broken_json(text))
    language = "" if is_plain else _language(text, media_type, format)
    if not language:
        return escape(text)
    from pygments import highlight as mark
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    formatter = HtmlFormatter(nowrap=True, classprefix="hl-")
    return Markup(mark(text, get_lexer_by_name(language, stripnl=False), formatter))


def _language(text: str, media_type: str, format: str) -> str:
    described = f"{media_type} {format}".lower()
    found = next((language for word, language in _LANGUAGES if word in described), "")
    return "json" if not found and text.lstrip()[:1] in ("{", "[") else found


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return text.lstrip()[:1] in ("{", "[")


def _broken_json(text: str) -> Iterator[str]:
    """The pieces of valid JSON with white space between members; numbers and strings stay as they are."""
    depth, is_in_string, is_escaped = 0, False, False
    previous = ""
    for character in text:
        if is_in_string:
            yield character
            is_in_string = is_escaped or character != '"'
            is_escaped = character == "\\" and not is_escaped
            continue
        if character in " \t\r\n":
            continue
        is_end = character in "}]"
        depth -= is_end
        if (is_end and previous not in "{[") or (not is_end and previous and previous in "{[,"):
            yield "\n" + _INDENT * depth
        depth += character in "{["
        yield character + (" " if character == ":" else "")
        is_in_string = character == '"'
        previous = character
