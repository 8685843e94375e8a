"""`/-/references`: what an entity refers to, and what refers to it (UI-77)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

from starlette.types import Receive

from annals.api.audit.formats import ListWrapper
from annals.api.audit.responses import TableContent, stream_table, subject_xid
from annals.api.http.methods import read_only_options
from annals.api.http.next_link import next_link
from annals.api.http.request import Request
from annals.api.http.response import Headers, Response
from annals.api.messaging.references.listing import REFERENCE_TABLE, ListedReference, ReferenceListing
from annals.api.messaging.references.request_params import ReferenceParams, parse_reference_params
from annals.api.registry.open_registry import Registry
from annals.api.xregistry.snapshot_tables import stream_table_as_of
from annals.api.xregistry.snapshots import Snapshots
from annals.domain.confluent.subjects import ContextIds
from annals.domain.model import Model
from annals.projections.entities.view import View
from annals.projections.events.event_families import EventFamily
from annals.projections.references.entity_references import EntityReferences
from annals.projections.references.schema_references import SchemaReferences
from annals.projections.references.subscription_references import SubscriptionMatcher

REFERENCES: Final = "references"


class ReferencesRoutes:
    """The surface of `/-/references`. families: of all events. context_ids: see `SchemaReferences`."""

    def __init__(self, registry: Registry, families: Sequence[EventFamily], context_ids: ContextIds) -> None:
        self._registry = registry
        self._snapshots = Snapshots(registry.readers, registry.definitions, registry.store.clock)
        self._matcher = SubscriptionMatcher(families)
        self._context_ids = context_ids

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`.

        Raises: NotFound for an entity that does not exist, Forbidden, BadRequest, MethodNotAllowed.
        """
        if (options := read_only_options(request)) is not None:
            return options
        xid, params = subject_xid(request), parse_reference_params(request)
        if params.asof is None:
            return await stream_table(
                self._registry,
                request,
                params.audit_params,
                lambda view: self._table(view, self._registry.definitions.current(view).model, request, xid, params),
            )
        snapshot = await self._snapshots.find(params.asof)
        return await stream_table_as_of(
            self._registry,
            request,
            params.audit_params,
            snapshot,
            lambda view: self._table(view, snapshot.definitions.model, request, xid, params),
        )

    def _table(
        self, full_view: View, model: Model, request: Request, xid: str, params: ReferenceParams
    ) -> TableContent:
        view = full_view.seen_by(request.caller)  # not only inside a visible Group: references lead out of it
        references = EntityReferences(view, model, SchemaReferences(view, self._context_ids))
        listing = ReferenceListing(view, references, self._matcher, request.caller)
        items, links = _page(request, params.audit_params.limit, listing.listed(xid, params))
        return TableContent(REFERENCE_TABLE, items, view.position(), ListWrapper({"xid": xid}, REFERENCES), links)


def _page(
    request: Request, limit: int | None, listed: Iterator[ListedReference]
) -> tuple[Iterator[ListedReference], Headers]:
    """As many references as the request asks for, or all without a limit; and the link to the next page."""
    if limit is None:
        return listed, []
    page = list(islice(listed, limit + 1))
    links = [next_link(request, page[limit - 1].cursor.text)] if len(page) > limit else []
    return iter(page[:limit]), links
