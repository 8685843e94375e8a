"""Documents as HTML with marks for the stylesheet. All that a document has is escaped."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple, TypeVar

from markupsafe import Markup, escape

from annals.api.ui.html_size import MAX_PART, cut_text
from annals.api.ui.json_layout import break_json, is_json

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

#: The seconds of a processor that a text may take. Some texts, such as a long row of `&` in XML, take the square of
#: their length.
_MAX_SECONDS: Final = 1.0

T = TypeVar("T")


class HighlightedText(NamedTuple):
    """A text as HTML. left_out: the number of characters at its end that a page has no room for."""

    html: Markup
    left_out: int


def highlight(text: str, media_type: str, format: str, *, is_plain: bool = False) -> HighlightedText:
    """A text as HTML. JSON in one line gets line breaks.

    is_plain: without marks. So is a text that has too many, or takes too long.
    """
    if "\n" not in text.strip() and is_json(text):
        text = break_json(text)
    language = "" if is_plain else _language(text, media_type, format)
    marked = _marked(text, language) if language else None
    if marked is not None and len(marked.encode()) <= MAX_PART:
        return HighlightedText(marked, 0)
    shown, left_out = cut_text(text, MAX_PART)
    return HighlightedText(escape(shown), left_out)


def _marked(text: str, language: str) -> Markup | None:
    """A text with marks; None if that takes longer than `_MAX_SECONDS`."""
    from pygments import format
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import get_lexer_by_name

    tokens = get_lexer_by_name(language, stripnl=False).get_tokens(text)
    try:
        return Markup(format(_within_time(tokens), HtmlFormatter(nowrap=True, classprefix="hl-")))
    except TimeoutError:
        return None


def _within_time(tokens: Iterable[T]) -> Iterator[T]:
    """The tokens. Raises: TimeoutError once they have taken too much time of the processor."""
    end = time.thread_time() + _MAX_SECONDS
    for token in tokens:
        if time.thread_time() > end:
            raise TimeoutError
        yield token


def _language(text: str, media_type: str, format: str) -> str:
    described = f"{media_type} {format}".lower()
    found = next((language for word, language in _LANGUAGES if word in described), "")
    return "json" if not found and text.lstrip()[:1] in ("{", "[") else found
