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
#: Returns the JSON text of an entity, in parts, from its xid, id, attributes and the index of its meta in these.
Splice = Callable[[str, str, str, int], tuple[str, ...]]

#: Number of collection members that are rendered together.
BLOCK_SIZE: Final = 100
#: The last member of a Resource.
_COUNT_MEMBER: Final = ',"versionscount":'


@lru_cache(maxsize=256)
def resource_splice(base_url: str, singular: str, suffix: str, asof: str) -> Splice:
    """The function that renders Resources of a type in the API view, without inlining, from xids and stored attributes.

    base_url: absolute URL of the registry. suffix: what follows an xid in `self`. asof: suffix of all URLs. None of the
    Resources may have an `xref`.
    """
    opening_length = len(f'{{"{singular}id":"","versionid":"')
    self_member, xid_member, metaurl_member, versionsurl_member, closing = _texts_around(base_url, suffix, asof)

    def splice(xid: str, id: str, text: str, meta_start: int) -> tuple[str, ...]:
        ids_end = text.find('"', opening_length + len(id)) + 1
        default_members, counts_text = text[ids_end:meta_start], text[text.rfind(_COUNT_MEMBER) :]
        return (
            text[:ids_end],
            self_member,
            xid,
            xid_member,
            xid,
            '"',
            default_members,
            metaurl_member,
            xid,
            versionsurl_member,
            xid,
            closing,
            counts_text,
        )

    return splice


def _texts_around(base_url: str, suffix: str, asof: str, collection_path: str = "") -> tuple[str, str, str, str, str]:
    """The texts around a Resource's xid in its URLs, or around its id if `collection_path` is the collection."""
    return (
        f',"self":"{base_url}{collection_path}',
        f'{suffix}{asof}","xid":"{collection_path}',
        f',"metaurl":"{base_url}{collection_path}',
        f'/meta{asof}","versionsurl":"{base_url}{collection_path}',
        f'/versions{asof}"',
    )


@lru_cache(maxsize=256)
def version_splice(base_url: str, singular: str, suffix: str, asof: str) -> Splice:
    """The function that renders Versions, without their documents."""

    def splice(xid: str, id: str, text: str, meta_start: int) -> tuple[str, ...]:
        opening = f'{{"{singular}id":"{xid.split("/", 5)[4]}","versionid":"{id}",'
        return opening, f'"self":"{base_url}{xid}{suffix}{asof}","xid":"{xid}",', text[len(opening) :]

    return splice


def splice_resources(texts: StoredTexts, base_url: str, xid: str, singular: str, suffix: str) -> Iterator[str]:
    """A collection of Resources as a JSON object, in pieces; each Resource is as `resource_splice` renders it.

    The code is repeated here because a call per Resource, with its xid, would take a fifth of the time.
    """
    id_start, gap_length = len(f'{{"{singular}id":"'), len('","versionid":"')
    self_member, xid_member, metaurl_member, versionsurl_member, closing = _texts_around(
        base_url, suffix, "", f"{xid}/"
    )
    separator, unread_texts = '{"', iter(texts)
    while rows_block := list(islice(unread_texts, BLOCK_SIZE)):
        parts: list[str] = []
        for row in rows_block:
            text, meta_start = row[0], row[1]
            id_end = text.index('"', id_start)
            id, ids_end = text[id_start:id_end], text.index('"', id_end + gap_length) + 1
            default_members, counts_text = text[ids_end:meta_start], text[text.rindex(_COUNT_MEMBER) :]
            parts += (separator, id, '":', text[:ids_end], self_member, id, xid_member, id, '"', default_members)
            parts += (metaurl_member, id, versionsurl_member, id, closing, counts_text)
            separator = ',"'
        yield "".join(parts)
    yield "}" if separator == ',"' else "{}"


def splice_versions(texts: StoredTexts, splice: Splice, xid: str, id_start: int) -> Iterator[str]:
    """A collection of Versions as a JSON object, in pieces.

    id_start: index of the id in the attributes of each Version.
    """
    separator = "{"
    for text, meta, *_ in texts:
        id = text[id_start : text.index('"', id_start)]
        yield "".join((separator, '"', id, '":', *splice(f"{xid}/{id}", id, text, meta)))
        separator = ","
    yield "}" if separator == "," else "{}"
