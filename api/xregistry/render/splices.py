"""Resources and Versions that are as they are stored but for their URLs: most of what is asked for.

Nothing of such an entity is looked at but its id and its text, and nothing is done but to put the URLs where they
belong, which costs a third of taking the text apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, Final

#: Rows with attributes and meta first, in the order of the answer; what else there is of a row is not looked at.
StoredTexts = Iterable[Any]
#: The JSON text of an entity, in parts, from its xid, id, attributes and meta.
Splice = Callable[[str, str, str, int], tuple[str, ...]]

#: Members of a collection that are written together.
BLOCK_SIZE: Final = 100
#: The last member of a Resource.
_COUNT: Final = ',"versionscount":'


@lru_cache(maxsize=256)
def resource_splice(base: str, singular: str, suffix: str, asof: str) -> Splice:
    """What gives Resources of a type in the API view, nothing inlined, from xids and stored attributes.

    base: absolute URL of the registry. suffix: what follows an xid in `self`. asof: what all URLs end with.
    None of them may stand for another.
    """
    before = len(f'{{"{singular}id":"","versionid":"')
    itself, xid_is, meta_is, versions_are, end = _around(base, suffix, asof)

    def splice(xid: str, id: str, text: str, meta: int) -> tuple[str, ...]:
        ids = text.find('"', before + len(id)) + 1
        default, rest = text[ids:meta], text[text.rfind(_COUNT) :]
        return text[:ids], itself, xid, xid_is, xid, '"', default, meta_is, xid, versions_are, xid, end, rest

    return splice


def _around(base: str, suffix: str, asof: str, place: str = "") -> tuple[str, str, str, str, str]:
    """What of a Resource stands around its xids, or, with the collection as its place, around its ids."""
    return (
        f',"self":"{base}{place}',
        f'{suffix}{asof}","xid":"{place}',
        f',"metaurl":"{base}{place}',
        f'/meta{asof}","versionsurl":"{base}{place}',
        f'/versions{asof}"',
    )


@lru_cache(maxsize=256)
def version_splice(base: str, singular: str, suffix: str, asof: str) -> Splice:
    """The same for Versions, their documents not inlined."""

    def splice(xid: str, id: str, text: str, meta: int) -> tuple[str, ...]:
        start = f'{{"{singular}id":"{xid.split("/", 5)[4]}","versionid":"{id}",'
        return start, f'"self":"{base}{xid}{suffix}{asof}","xid":"{xid}",', text[len(start) :]

    return splice


def splice_resources(texts: StoredTexts, base: str, xid: str, singular: str, suffix: str) -> Iterator[str]:
    """A collection of Resources as a JSON object, in pieces, each as `resources` gives it.

    There may be many, so they are written here: a call for each, and its xid, would be a fifth of the work.
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
    """The same of Versions. start: where the id of each begins in its attributes."""
    before = "{"
    for text, meta, *_ in texts:
        id = text[start : text.index('"', start)]
        yield "".join((before, '"', id, '":', *splice(f"{xid}/{id}", id, text, meta)))
        before = ","
    yield "}" if before == "," else "{}"
