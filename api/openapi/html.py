"""HTML as values: elements whose texts and attributes are always escaped."""

from __future__ import annotations

from html import escape


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def element(name: str, *children: str, **attributes: str) -> Html:
    """An element. attributes: `_` at the end of a name is left out, as in `class_`."""
    given = "".join(f' {key.rstrip("_")}="{escape(value)}"' for key, value in attributes.items())
    return Html(f"<{name}{given}>{join_html(*children)}</{name}>")


def join_html(*children: str) -> Html:
    """Several pieces, one after the other; what is not HTML yet is escaped."""
    return Html("".join(child if isinstance(child, Html) else escape(child, quote=False) for child in children))
