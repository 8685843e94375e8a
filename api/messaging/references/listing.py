"""The references in one response, in their order, each with the cursor after it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from annals.api.audit.formats import JsonMembers, TableLayout
from annals.api.messaging.references.request_params import IN, OUT, ReferenceCursor, ReferenceParams
from annals.api.subscriptions.context import can_see, check_caller
from annals.domain.access.roles import Caller
from annals.domain.errors import problems
from annals.domain.errors.http_errors import Forbidden
from annals.domain.values import xid as xids
from annals.projections.entities.view import View
from annals.projections.references.entity_references import EntityReferences
from annals.projections.references.reachable import reachable
from annals.projections.references.reference import Reference
from annals.projections.references.subscription_references import SubscriptionMatcher
from annals.projections.subscriptions.state.subscriptions import COLLECTION as SUBSCRIPTIONS


class ListedReference(NamedTuple):
    """A reference in a response. direction: seen from the requested entity. depth: its distance, from 1."""

    reference: Reference
    direction: str
    depth: int
    cursor: ReferenceCursor


@dataclass(frozen=True, slots=True)
class ReferenceListing:
    """Lists the references of one moment for a caller. view: as the caller sees it."""

    view: View
    references: EntityReferences
    matcher: SubscriptionMatcher
    caller: Caller

    def listed(self, xid: str, params: ReferenceParams) -> Iterator[ListedReference]:
        """The references of a request, after its cursor. Raises: NotFound for an entity that is not there or hidden."""
        if xid != xids.REGISTRY and not self.references.exists(xid):
            raise problems.NotFound(xid)
        return self._near(xid, params) if params.depth == 1 else self._reachable(xid, params)

    def _near(self, xid: str, params: ReferenceParams) -> Iterator[ListedReference]:
        after = params.after
        directions = params.directions[1:] if after and after.direction == IN and OUT in params.directions else None
        for direction in params.directions if directions is None else directions:
            cursor = after if after and after.direction == direction else None
            yield from self._of_direction(xid, direction, params.below, cursor)

    def _of_direction(
        self, xid: str, direction: str, below: bool, after: ReferenceCursor | None
    ) -> Iterator[ListedReference]:
        start_key = xids.tree_key(after.source) if after else ""
        source, number = "", 0
        for reference in self._references(xid, direction, below, start_key):
            number = number + 1 if reference.source == source else 1
            source = reference.source
            if after is None or source != after.source or number > after.number:
                yield ListedReference(reference, direction, 1, ReferenceCursor(direction, number, source))

    def _references(self, xid: str, direction: str, below: bool, start_key: str) -> Iterator[Reference]:
        if direction == OUT:
            yield from self.references.outgoing(xid, start_key, below=below)
            return
        starts_at_subscription = start_key.startswith(xids.tree_key(f"{SUBSCRIPTIONS}/"))
        if not starts_at_subscription:
            yield from self.references.incoming(xid, start_key, below=below)
        for reference in self._subscriptions(xid):
            if not starts_at_subscription or xids.tree_key(reference.source) >= start_key:
                yield reference

    def _subscriptions(self, xid: str) -> Iterator[Reference]:
        row = self.view.entity(xid)
        try:
            check_caller(self.caller)
        except Forbidden:
            return
        if row is not None and xid != xids.REGISTRY:
            yield from self.matcher.references(self.view, row, lambda subscription: can_see(self.caller, subscription))

    def _reachable(self, xid: str, params: ReferenceParams) -> Iterator[ListedReference]:
        count, start = 0, params.after.number if params.after else 0
        for direction in params.directions:
            step = self.references.outgoing if direction == OUT else self.references.incoming
            for reference, depth in reachable(xid, params.depth, step, forwards=direction == OUT):
                count += 1
                if count > start:
                    yield ListedReference(reference, direction, depth, ReferenceCursor(direction, count, xid))


def _members(listed: ListedReference) -> JsonMembers:
    reference = listed.reference
    return {
        "from": reference.source,
        "to": reference.target,
        "attribute": reference.attribute,
        "state": reference.state.value,
        "direction": listed.direction,
        "depth": listed.depth,
    }


def _rows(listed: ListedReference) -> Iterator[dict[str, Any]]:
    yield _members(listed)


REFERENCE_TABLE: Final[TableLayout[ListedReference]] = TableLayout(
    ("from", "to", "attribute", "state", "direction", "depth"), _members, _rows
)
