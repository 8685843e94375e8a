"""Renders Resources and Versions by inserting URLs into their stored text, which serves most requests.

The code reads only the id and finds the positions of the URLs; it does not parse the rest. This costs a third of
splitting the text into members.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, Final

#: Rows that begin with attributes and meta, in response order; other columns are not read.
StoredTexts = Iterable[Any]
#: Returns the JSON text of an entity, in parts, from its xid, id, attributes and meta.
Splice = Callable[[str, str, str, int], tuple[str, ...]]

#: Number of collection members that are rendered together.
BLOCK_SIZE: Final = 100
#: The last member of a Resource.
_COUNT: Final = ',"versionscount":'


@lru_cache(maxsize=256)
def resource_splice(base: str, singular: str, suffix: str, asof: str) -> Splice:
    """The function that renders Resources of a type in the API view, without inlining, from xids and stored attributes.

    base: absolute URL of the registry. suffix: what follows an xid in `self`. asof: suffix of all URLs. None of the
    Resources may have an `xref`.
    """
    before = len(f'{{"{singular}id":"","versionid":"')
    itself, xid_is, meta_is, versions_are, end = _around(base, suffix, asof)

    def splice(xid: str, id: str, text: str, meta: int) -> tuple[str, ...]:
        ids = text.find('"', before + len(id)) + 1
        default, rest = text[ids:meta], text[text.rfind(_COUNT) :]
        return text[:ids], itself, xid, xid_is, xid, '"', default, meta_is, xid, versions_are, xid, end, rest

    return splice


def _around(base: str, suffix: str, asof: str, place: str = "") -> tuple[str, str, str, str, str]:
    """The texts around a Resource's xid in its URLs, or around its id if `place` is the collection."""
    return (
        f',"self":"{base}{place}',
        f'{suffix}{asof}","xid":"{place}',
        f',"metaurl":"{base}{place}',
        f'/meta{asof}","versionsurl":"{base}{place}',
        f'/versions{asof}"',
    )


@lru_cache(maxsize=256)
def version_splice(base: str, singular: str, suffix: str, asof: str) -> Splice:
    """The function that renders Versions, without their documents."""

    def splice(xid: str, id: str, text: str, meta: int) -> tuple[str, ...]:
        start = f'{{"{singular}id":"{xid.split("/", 5)[4]}","versionid":"{id}",'
        return start, f'"self":"{base}{xid}{suffix}{asof}","xid":"{xid}",', text[len(start) :]

    return splice


def splice_resources(texts: StoredTexts, base: str, xid: str, singular: str, suffix: str) -> Iterator[str]:
    """A collection of Resources as a JSON object, in pieces; each Resource is as `resource_splice` renders it.

    The code is repeated here because a call per Resource, with its xid, would take a fifth of the time.
    """
    start, between = len(f'{{"{singular}id":"'), len('","versionid":"')
    itself, xid_is, meta_is, versions_are, end = _around(base, suffix, "", f"{xid}/")
    before, waiting = '{"', iter(texts)
    while block := list(islice(waiting, BLOCK_SIZE)):
        parts: list[str] = []
        for row in block:
            text, meta = row[0], row[1]
            ends = text.index('"', start)
            id, ids = text[start:ends], text.index('"', ends + between) + 1
            default, rest = text[ids:meta], text[text.rindex(_COUNT) :]
            parts += (before, id, '":', text[:ids], itself, id, xid_is, id, '"', default)
            parts += (meta_is, id, versions_are, id, end, rest)
            before = ',"'
        yield "".join(parts)
    yield "}" if before == ',"' else "{}"


def splice_versions(texts: StoredTexts, splice: Splice, xid: str, start: int) -> Iterator[str]:
    """A collection of Versions as a JSON object, in pieces.

    start: index of the id in the attributes of each Version.
    """
    before = "{"
    for text, meta, *_ in texts:
        id = text[start : text.index('"', start)]
        yield "".join((before, '"', id, '":', *splice(f"{xid}/{id}", id, text, meta)))
        before = ","
    yield "}" if before == "," else "{}"
