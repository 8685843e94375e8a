"""Resources and Versions that are as they are stored but for their URLs: most of what is asked for.

Nothing of such an entity is looked at but its xid and its text, and nothing is done but to put the URLs where they
belong, which costs a third of taking the text apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Final, NamedTuple

from projections.entities.rows import Row

#: xids and ids with the stored attributes as JSON text, in the order of the answer.
Texts = Iterable[tuple[str, str, str]]


class Stored(NamedTuple):
    """The members of a collection. entity: the row of one of them, by its xid."""

    texts: Texts
    entity: Callable[[str], Row | None]


#: The JSON text of an entity from its xid, its id and its stored attributes; None where that takes more than this.
Splice = Callable[[str, str, str], str | None]

#: Members of a collection that are written together.
TOGETHER: Final = 100
#: Where the members of a Resource that are not its default Version's begin in its stored text, and its last one.
_META: Final = ',"meta":{'
_COUNT: Final = ',"versionscount":'


@lru_cache(maxsize=256)
def resources(base: str, singular: str, suffix: str, asof: str) -> Splice:
    """What gives Resources of a type in the API view, nothing inlined, from xids and stored attributes.

    base: absolute URL of the registry. suffix: what follows an xid in `self`. asof: what all URLs end with.
    """
    first, second = f'{{"{singular}id":"', '","versionid":"'
    itself, xid_is, meta_is = f',"self":"{base}', f'{suffix}{asof}","xid":"', f',"metaurl":"{base}'
    versions_are, end = f'/meta{asof}","versionsurl":"{base}', f'/versions{asof}"'

    def splice(xid: str, id: str, text: str) -> str | None:
        at = len(first) + len(id)
        ids, count = text.find('"', at + len(second)) + 1, text.rfind(_COUNT)
        meta = text.find(_META, ids, count)
        # An attribute that holds an object with a member of this name takes the long way.
        if meta < 0 or not text.startswith(first) or not text.startswith(second, at) or text.find(_META, meta + 1) > 0:
            return None
        default, rest = text[ids:meta], text[count:]
        return f'{text[:ids]}{itself}{xid}{xid_is}{xid}"{default}{meta_is}{xid}{versions_are}{xid}{end}{rest}'

    return splice


@lru_cache(maxsize=256)
def versions(base: str, singular: str, suffix: str, asof: str) -> Splice:
    """The same for Versions, their documents not inlined."""

    def splice(xid: str, id: str, text: str) -> str | None:
        start = f'{{"{singular}id":"{xid.split("/", 5)[4]}","versionid":"{id}",'
        if not text.startswith(start):
            return None
        return f'{start}"self":"{base}{xid}{suffix}{asof}","xid":"{xid}",{text[len(start) :]}'

    return splice


def collection(texts: Texts, splice: Splice, otherwise: Callable[[str], str]) -> Iterator[str]:
    """A whole collection as a JSON object, in pieces. otherwise: gives the JSON text where `splice` does not."""
    before, waiting = "{", iter(texts)
    while block := list(islice(waiting, TOGETHER)):
        members = [f'"{id}":{splice(xid, id, text) or otherwise(xid)}' for xid, id, text in block]
        yield before + ",".join(members)
        before = ","
    yield "}" if before == "," else "{}"
