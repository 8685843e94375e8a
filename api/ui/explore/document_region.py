"""The region "Document": what an entity's document is, and its text where it is short enough (UI-74)."""

from __future__ import annotations

import asyncio
import hashlib
import re
from collections.abc import Mapping
from typing import Any, Final

from annals.api.ui.explore.entity_view import EntityView
from annals.api.ui.explore.highlight import highlight
from annals.api.ui.own_api import query_text
from annals.api.ui.page_context import PageContext

#: Sizes in bytes up to which a text is highlighted, and shown at all.
MAX_HIGHLIGHTED: Final = 256 << 10
MAX_SHOWN: Final = 1 << 20
#: The most lines that are numbered, whose numbers take 109 kB of a page.
MAX_NUMBERED: Final = 20_000
#: A parser of HTML makes the same of each of these.
_LINE_END: Final = re.compile(r"\r\n|\r|\n")
_HEX_BYTES: Final = 256
_BYTES_IN_LINE: Final = 16


async def read_document(page: PageContext, entity: EntityView) -> Mapping[str, Any]:
    """What the region shows: of a document elsewhere, its URL alone."""
    xid = entity.place.xid
    asof = query_text({"asof": page.asof})
    download = page.api_url(xid + (f"?{asof}" if asof else ""))
    answer = await page.get(xid)
    if answer.is_elsewhere:
        _, url_name, _ = entity.place.document_names
        return {"is_elsewhere": True, "url": answer.header("location") or entity.attributes.get(url_name, "")}
    kind = answer.header("content-type") or ""
    return {"is_elsewhere": False, "download": download, "type": kind} | await asyncio.to_thread(
        describe_document, answer.body, kind, entity.attributes.get("format", "")
    )


def describe_document(body: bytes, media_type: str, format: str) -> dict[str, Any]:
    """Size, hash and text of a document. html: the text with marks; empty for one that is only offered for download.

    numbers: those of its lines; empty for too many. left_out: the number of characters that are not shown. binary: the
    first bytes in hexadecimal; empty for text.
    """
    hash = hashlib.sha256(body).hexdigest()
    shown: dict[str, Any] = {"size": len(body), "sha256": hash, "html": "", "numbers": "", "left_out": 0, "binary": ""}
    text = _text(body) if len(body) <= MAX_SHOWN else None
    if text is None and len(body) <= MAX_SHOWN:
        return shown | {"binary": _hex_lines(body[:_HEX_BYTES])}
    if text is None:
        return shown
    html, left_out = highlight(text, media_type, format, is_plain=len(body) > MAX_HIGHLIGHTED)
    return shown | {"html": html, "numbers": _line_numbers(html), "left_out": left_out}


def _line_numbers(text: str) -> str:
    """A number for each line as browsers see it; empty for more lines than a page has room to number."""
    ends = len(_LINE_END.findall(text))
    count = ends + (not text.endswith(("\r", "\n")))
    return "\n".join(map(str, range(1, count + 1))) if count <= MAX_NUMBERED else ""


def _text(body: bytes) -> str | None:
    """The text of a document; None for one that is no text."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def _hex_lines(body: bytes) -> str:
    lines = (body[start : start + _BYTES_IN_LINE] for start in range(0, len(body), _BYTES_IN_LINE))
    return "\n".join(f"{number * _BYTES_IN_LINE:04x}  {line.hex(' ')}" for number, line in enumerate(lines))
