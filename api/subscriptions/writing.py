"""POST, PUT and DELETE of subscriptions. A body is checked before the write lock; what is stored, under it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

from starlette.types import Receive

from api.answer import Answer
from api.dryrun import tried
from api.feeds.asked import parameters
from api.request import Request
from api.subscriptions.asked import check_addresses, condition, document
from api.subscriptions.parts import Parts, check_writer, existing, position_at, xid
from api.subscriptions.reading import Reading
from api.subscriptions.shown import answer, public, tagged
from commands.log import Recorded
from commands.log import Writing as Transaction
from commands.waiting import Answer as Built
from domain.commands import DeleteSubscription, WriteSubscription
from domain.roles import Caller
from domain.subscriptions.deciding import pointer_of
from domain.subscriptions.places import Place, refused
from domain.subscriptions.properties import Realised, realised
from domain.subscriptions.subscription import Subscription
from projections.entities.query import View

_DRYRUN = "dryrun"


class Writing:
    """Answers to requests that make, replace or delete a subscription."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._reading = Reading(parts)

    async def create(self, request: Request, receive: Receive) -> Answer:
        """201 with the new subscription, before its sink has been contacted (SUB-501). Raises: Problem."""
        check_writer(request.caller)
        dryrun = _DRYRUN in parameters(request, (_DRYRUN,))
        command = await self._command(request, await document(request, receive, self._parts.body), str(uuid4()), True)
        if dryrun:
            return await tried(request, self._parts.registry.road, command, None, own=True)
        recorded = await self._submitted(request, command, _after)
        location = (b"location", f"{request.base}{command.xid}".encode("latin-1", "replace"))
        return await self._told(request, recorded, 201, [location])

    async def replace(self, request: Request, receive: Receive) -> Answer:
        """200 with the subscription as it is now (SUB-502, SUB-503). Raises: Problem."""
        dryrun = _DRYRUN in parameters(request, (_DRYRUN,))
        id = await self._found(request)
        check_writer(request.caller)
        body = await document(request, receive, self._parts.body)
        if isinstance(body, dict) and body.get("id") not in (None, id):
            raise Place().at("id").refused("idmismatch", "the path has another id")
        command = await self._command(request, body, id, False)
        holds = condition(request, command.xid, request.caller)
        if dryrun:
            return await tried(request, self._parts.registry.road, command, holds, own=True)
        recorded = await self._submitted(request, command, _after, holds)
        return await self._told(request, recorded, 200)

    async def delete(self, request: Request, receive: Receive) -> Answer:
        """200 with the subscription as it was last (SUB-504). Raises: Problem."""
        dryrun = _DRYRUN in parameters(request, (_DRYRUN,))
        id = await self._found(request)
        check_writer(request.caller)
        command = DeleteSubscription(xid(id))
        holds = condition(request, command.xid, request.caller)
        last: list[tuple[Subscription, dict[str, Any]]] = []

        def remembered(transaction: Transaction) -> None:
            holds(transaction)
            entity = transaction.world.get(command.xid)
            if entity is not None:
                subscription = Subscription.of(entity, entity.position)
                last[:] = [(subscription, public(subscription, request.caller, transaction.world.secret))]

        if dryrun:
            return await tried(request, self._parts.registry.road, command, remembered, own=True)
        recorded = await self._submitted(request, command, lambda transaction, recorded: None, remembered)
        subscription, shown = last[-1]
        await asyncio.to_thread(self._parts.deliveries.heard, replace(subscription, position=recorded.position))
        return answer(request, 200, shown, xregcorrelationid=recorded.xregcorrelationid)

    async def _found(self, request: Request) -> str:
        """The id of the subscription that a request is about. Raises: NotFound."""
        quick = self._parts.registry.readers.quick
        await asyncio.to_thread(lambda: existing(quick(), request.segments[1], request.caller))
        return request.segments[1]

    async def _command(self, request: Request, body: Any, id: str, new: bool) -> WriteSubscription:
        """The command that a body comes to. Raises: InvalidSubscription, QuotaExceeded."""
        wanted = await asyncio.to_thread(lambda: realised(body, self._parts.offered()))
        self._check_vault(wanted)
        await check_addresses(wanted.attributes, self._parts.resolver)
        time = wanted.attributes["config"].get("starttime")
        return WriteSubscription(
            xid=xid(id),
            new=new,
            attributes=wanted.attributes,
            secrets=wanted.secrets,
            needed=wanted.needed,
            dropped=wanted.dropped,
            place=wanted.place,
            starttime=await asyncio.to_thread(self._position, time) if time is not None else None,
            groups=_groups(request.caller),
            most=self._parts.owned,
        )

    def _check_vault(self, wanted: Realised) -> None:
        """Raises: InvalidSubscription where there is a secret and nothing to keep it with (SUB-914)."""
        if wanted.secrets and not self._parts.registry.store.vault.usable:
            reason = "this server has no master key, so it keeps no secrets, nor URIs with a query"
            raise refused("credentialsunavailable", pointer_of(min(wanted.secrets)), reason)

    def _position(self, time: str) -> int:
        return position_at(self._parts.registry.readers.quick().log, time)

    async def _submitted(
        self, request: Request, command: Any, built: Built, holds: Callable[[Transaction], None] | None = None
    ) -> Recorded:
        road = self._parts.registry.road
        return await asyncio.wrap_future(road.submit(command, request.caller, built, holds))

    async def _told(
        self, request: Request, recorded: Recorded, status: int, more: list[tuple[bytes, bytes]] | None = None
    ) -> Answer:
        subscription: Subscription = recorded.answer
        quick = self._parts.registry.readers.quick
        shown = await asyncio.to_thread(lambda: self._reading.shown(subscription, quick(), request.caller))
        headers = [*tagged(subscription, request.caller), *(more or [])]
        return answer(request, status, shown, headers, recorded.xregcorrelationid)


def _after(transaction: Transaction, recorded: Recorded) -> Subscription | None:
    """The subscription that a command left behind."""
    id = recorded.processed[0].rpartition("/")[2]
    return View.over(transaction.connection).subscriptions.one(id)


def _groups(caller: Caller) -> tuple[str, ...] | None:
    """The Groups that a caller may read; None for the whole registry."""
    return None if caller.role is not None else tuple(sorted(caller.groups))
