"""Resources and Versions that are as they are stored but for their URLs: most of what is asked for.

Nothing of such an entity is looked at but its xid and its text, and nothing is done but to put the URLs where they
belong, which costs a third of taking the text apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from projections.entities.rows import Row

#: xids with the stored attributes as JSON text, in the order of the answer.
Texts = Iterable[tuple[str, str]]


class Stored(NamedTuple):
    """The members of a collection. entity: the row of one of them, by its xid."""

    texts: Texts
    entity: Callable[[str], Row | None]


#: The JSON text of an entity; None where that takes more than this.
Splice = Callable[[str, str], str | None]

#: Where the members of a Resource that are not its default Version's begin in its stored text, and its last one.
_META: Final = ',"meta":{'
_COUNT: Final = ',"versionscount":'


@dataclass(frozen=True, slots=True)
class Splices:
    """How the entities of one Resource type get their URLs.

    base: absolute URL of the registry. suffix: what follows an xid in `self`. asof: what all URLs end with.
    """

    base: str
    singular: str
    suffix: str
    asof: str

    def resource(self, xid: str, text: str) -> str | None:
        """A Resource in the API view, nothing inlined. text: its stored attributes."""
        start = f'{{"{self.singular}id":"{xid[xid.rindex("/") + 1 :]}","versionid":"'
        default, _, meta = text.partition(_META)
        own, counted, count = meta.rpartition(_COUNT)
        # An attribute that holds an object with members of these names takes the long way.
        if not default.startswith(start) or not counted or _META in meta or _COUNT in own:
            return None
        ids = default.index('"', len(start)) + 1
        url, asof = self.base + xid, self.asof
        return (
            f'{default[:ids]},"self":"{url}{self.suffix}{asof}","xid":"{xid}"{default[ids:]},"metaurl":"{url}/meta{asof}"'
            f',"versionsurl":"{url}/versions{asof}"{_COUNT}{count}'
        )

    def version(self, xid: str, text: str) -> str | None:
        """A Version in the API view, its document not inlined. text: its stored attributes."""
        start = f'{{"{self.singular}id":"{xid.split("/", 5)[4]}","versionid":"{xid[xid.rindex("/") + 1 :]}",'
        if not text.startswith(start):
            return None
        return f'{start}"self":"{self.base}{xid}{self.suffix}{self.asof}","xid":"{xid}",{text[len(start) :]}'


def collection(texts: Texts, splice: Splice, otherwise: Callable[[str], str]) -> Iterator[str]:
    """A whole collection as a JSON object, in pieces. otherwise: gives the JSON text where `splice` does not."""
    before = "{"
    for xid, text in texts:
        yield f'{before}"{xid[xid.rindex("/") + 1 :]}":{splice(xid, text) or otherwise(xid)}'
        before = ","
    yield "}" if before == "," else "{}"
