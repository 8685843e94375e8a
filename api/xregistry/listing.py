"""Collections that are filtered, sorted or paged.

Spec: core 1.0-rc4, "Filter Flag", "Sort Flag"; Pagination 0.1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final
from urllib.parse import unquote_plus

from annals.api.http.response import Headers
from annals.api.xregistry.cursor import Cursor, parse_cursor
from annals.api.xregistry.render.filter_effects import FilterEffects
from annals.api.xregistry.render.json_members import split_members
from annals.api.xregistry.request.flags import PAGING_FLAGS
from annals.api.xregistry.request.parsed_request import ParsedRequest
from annals.api.xregistry.request.paths import PathKind, RequestTarget
from annals.domain.filters import EntityFilter, PathScope, Sort, parse_filter, parse_sort
from annals.domain.values import xid as xids
from annals.projections.entities.filters.pages import BY_ID, CollectionMembers, PageKey
from annals.projections.entities.rows import EntityRow
from annals.projections.entities.view import View
from annals.projections.entities.xref import resource_types

#: Maximum number of members in a page, because a page is held in memory.
MAX_PAGE: Final = 1000


@dataclass(frozen=True, slots=True)
class CollectionListing:
    """The content of a collection's response. rows: members, each followed by the rows inlined below it."""

    rows: Iterator[EntityRow]
    links: Headers
    filter_effects: FilterEffects | None


def filter_of(parsed: ParsedRequest) -> EntityFilter | None:
    """The filter of a request; None if it has none. Raises: BadFilter."""
    paths = parsed.flags.filter
    return None if paths is None else parse_filter(paths, _scope_of(parsed.target), parsed.definitions.model)


def sort_of(parsed: ParsedRequest) -> Sort | None:
    """The sort order of a request; None if it has none. Raises: BadSort."""
    path = parsed.flags.sort
    return None if path is None else parse_sort(path, _scope_of(parsed.target), parsed.definitions.model)


def _scope_of(target: RequestTarget) -> PathScope:
    """The scope at which the paths of a request's filter start."""
    if target.kind is PathKind.META:
        return PathScope(xids.type_of(target.row_xid), is_meta=True)
    return PathScope(xids.REGISTRY if target.kind is PathKind.EXPORT else xids.type_of(target.xid))


def types_with_xref(parsed: ParsedRequest) -> list[str]:
    """The Resource types at or below the path of a request. Such Resources may be cross references (`xref`)."""
    path = xids.REGISTRY if parsed.target.kind is PathKind.EXPORT else parsed.target.xid
    return resource_types({plural: group.resources for plural, group in parsed.definitions.model.groups.items()}, path)


def cursor_of(parsed: ParsedRequest, head: int) -> Cursor | None:
    """The cursor of a request; None if it has none. head: last position of the log. Raises: BadRequest."""
    text = parsed.flags.cursor
    return parse_cursor(text, _identity(parsed), head) if text is not None else None


def _identity(parsed: ParsedRequest) -> str:
    """The text that the cursor of a request has to match."""
    request = parsed.request
    return f"{request.base}{parsed.target.xid}?{'&'.join(_without_paging(request.query.decode('latin-1')))}"


def list_collection(
    view: View, parsed: ParsedRequest, owner: EntityRow, types: Collection[str], max_members: int
) -> CollectionListing:
    """The members of a collection.

    owner: the entity that has it. types: entity types inlined below the members. max_members: of a page; 0 for no
    maximum.
    """
    collection_query = _CollectionQuery(view, parsed, owner)
    limit = min((number for number in (parsed.flags.limit, max_members) if number), default=None)
    if limit is None and parsed.flags.cursor is None:
        return CollectionListing(collection_query.all_rows(types), [], collection_query.filter_effects)
    page_keys, links = collection_query.page(min(limit or MAX_PAGE, MAX_PAGE))
    if collection_query.filter_effects and page_keys:
        keys = [page_key.tree_key for page_key in page_keys]
        collection_query.filter_effects.set_key_range(min(keys), f'{max(keys)}"')
    return CollectionListing(
        collection_query.selection.with_descendants(collection_query.members.rows(page_keys), types),
        links,
        collection_query.filter_effects,
    )


class _CollectionQuery:
    """The query of a collection request, independent of the page."""

    def __init__(self, view: View, parsed: ParsedRequest, owner: EntityRow) -> None:
        request, target, flags, _ = parsed
        self._flags = flags
        self._url = f"{request.base}{target.xid}"
        self._query = _without_paging(request.query.decode("latin-1"))
        self._identity = _identity(parsed)
        head = view.position()
        self._cursor = parse_cursor(flags.cursor, self._identity, head) if flags.cursor is not None else None
        position = self._cursor.position if self._cursor else head
        view = view.at_cursor(position)
        filter, self._sort = filter_of(parsed), sort_of(parsed)
        row_overrides = view.row_overrides(
            target.xid,
            types_with_xref(parsed),
            position if position < head else None,
            uses_index=filter is not None or bool(self._sort and self._sort.path),
        )
        type = xids.type_of(target.xid)
        size = int(split_members(owner.attributes).get(f"{type.rpartition('.')[2]}count", "0"))
        self.selection = view.selection(target.xid, filter, request.base, row_overrides)
        self.members: CollectionMembers = view.members(self.selection, type, self._sort, size)
        self.filter_effects = FilterEffects(self.selection) if filter is not None else None
        self._start = self._cursor or Cursor(head, size if filter is None else -1)
        self._type = type

    def all_rows(self, types: Collection[str]) -> Iterator[EntityRow]:
        """All members, with the rows inlined below them."""
        selection = self.selection
        if (self._sort or BY_ID).path or (self._sort and self._sort.descending):
            return selection.with_descendants(self.members.rows(self.members.page_keys()), types)
        return selection.rows(selection.state, {self._type, *types}, selection.low, selection.high)

    def page(self, limit: int) -> tuple[list[PageKey], Headers]:
        """The keys of a page's members, and the links to other pages."""
        start = (
            self._start if self._start.count >= 0 else Cursor(self._start.position, self.selection.count(self._type))
        )
        page_size = min(limit, start.page_size or limit)
        page_keys = list(islice(self.members.page_keys(start.after, start.backwards, page_size + 1), page_size + 1))
        has_more = len(page_keys) > page_size
        page_keys = page_keys[:page_size][:: -1 if start.backwards else 1]
        last_size = start.count % limit or limit
        targets = {
            "next": Cursor(start.position, start.count, page_keys[-1])
            if page_keys and (start.after if start.backwards else has_more)
            else None,
            "prev": Cursor(start.position, start.count, page_keys[0], backwards=True)
            if page_keys and (has_more if start.backwards else start.after)
            else None,
            "first": Cursor(start.position, start.count),
            "last": Cursor(start.position, start.count, backwards=True, page_size=last_size)
            if start.count > limit
            else None,
        }
        return page_keys, [self._link(rel, cursor) for rel, cursor in targets.items() if cursor]

    def _link(self, rel: str, cursor: Cursor) -> tuple[bytes, bytes]:
        limit = [] if self._flags.limit is None else [f"limit={self._flags.limit}"]
        query = "&".join([*self._query, *limit, f"cursor={cursor.text(self._identity)}"])
        return b"link", f"<{self._url}?{query}>;rel={rel};count={cursor.count}".encode("latin-1")


def _without_paging(query: str) -> list[str]:
    return [part for part in query.split("&") if part and unquote_plus(part.partition("=")[0]) not in PAGING_FLAGS]
