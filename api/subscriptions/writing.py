"""POST, PUT and DELETE of subscriptions. A body is checked before the write lock, stored state under the lock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

from starlette.types import Receive

from annals.api.http.query_params import query_params
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.api.subscriptions.context import (
    SubscriptionApiContext,
    check_writer,
    find_subscription,
    subscription_xid,
)
from annals.api.subscriptions.reading import SubscriptionReadHandler
from annals.api.subscriptions.request_params import check_addresses, read_json, write_condition
from annals.api.subscriptions.responses import json_response, subscription_document, subscription_headers
from annals.api.xregistry.dryrun import dry_run
from annals.commands.pending_command import BuildAnswer
from annals.commands.store.write_transaction import Recorded, WriteTransaction
from annals.domain.decisions.commands import DeleteSubscription, WriteSubscription
from annals.domain.decisions.subscriptions import secret_pointer
from annals.domain.subscriptions.error_places import ErrorPlace, invalid_subscription
from annals.domain.subscriptions.subscription import Subscription
from annals.domain.subscriptions.subscription_document import SubscriptionDocument, parse_subscription
from annals.projections.entities.transaction_view import TransactionView
from annals.projections.log.answer_position import note_position

_DRYRUN = "dryrun"


class SubscriptionWriteHandler:
    """Handles requests that create, replace or delete a subscription."""

    def __init__(self, context: SubscriptionApiContext) -> None:
        self._context = context
        self._read_handler = SubscriptionReadHandler(context)

    async def create(self, request: Request, receive: Receive) -> Response:
        """201 with the new subscription. The server has not contacted its sink yet (SUB-501). Raises: Problem."""
        check_writer(request.caller)
        dryrun = _DRYRUN in query_params(request, (_DRYRUN,))
        command = await self._write_command(
            request, await read_json(request, receive, self._context.max_body), str(uuid4()), True
        )
        if dryrun:
            return await dry_run(request, self._context.registry.command_bus, command, None, is_unrestricted=True)
        recorded = await self._submit(request, command, _written_subscription)
        location = (b"location", f"{request.base}{command.xid}".encode("latin-1", "replace"))
        return await self._response(request, recorded, 201, [location])

    async def replace(self, request: Request, receive: Receive) -> Response:
        """200 with the new state of the subscription (SUB-502, SUB-503). Raises: Problem."""
        dryrun = _DRYRUN in query_params(request, (_DRYRUN,))
        id = await self._existing_id(request)
        check_writer(request.caller)
        body = await read_json(request, receive, self._context.max_body)
        if isinstance(body, dict) and body.get("id") not in (None, id):
            raise ErrorPlace().child("id").error("idmismatch", "the path has another id")
        command = await self._write_command(request, body, id, False)
        condition = write_condition(request, command.xid, request.caller)
        if dryrun:
            return await dry_run(request, self._context.registry.command_bus, command, condition, is_unrestricted=True)
        recorded = await self._submit(request, command, _written_subscription, condition)
        return await self._response(request, recorded, 200)

    async def delete(self, request: Request, receive: Receive) -> Response:
        """200 with the last state of the subscription (SUB-504). Raises: Problem."""
        dryrun = _DRYRUN in query_params(request, (_DRYRUN,))
        id = await self._existing_id(request)
        check_writer(request.caller)
        command = DeleteSubscription(subscription_xid(id))
        condition = write_condition(request, command.xid, request.caller)
        last_states: list[tuple[Subscription, dict[str, Any]]] = []

        def check_and_remember(transaction: WriteTransaction) -> None:
            condition(transaction)
            entity = transaction.world.get(command.xid)
            if entity is not None:
                subscription = Subscription.from_entity(entity, entity.position)
                last_states[:] = [
                    (subscription, subscription_document(subscription, request.caller, transaction.world.secret))
                ]

        if dryrun:
            return await dry_run(
                request, self._context.registry.command_bus, command, check_and_remember, is_unrestricted=True
            )
        recorded = await self._submit(request, command, lambda transaction, recorded: None, check_and_remember)
        subscription, document = last_states[-1]
        await asyncio.to_thread(
            self._context.deliveries.wait_until_applied, replace(subscription, position=recorded.position)
        )
        return json_response(request, 200, document, xregcorrelationid=recorded.xregcorrelationid)

    async def _existing_id(self, request: Request) -> str:
        """The id of the requested subscription. Raises: NotFound."""
        quick_view = self._context.registry.readers.quick_view
        await asyncio.to_thread(lambda: find_subscription(quick_view(), request.segments[1], request.caller))
        return request.segments[1]

    async def _write_command(self, request: Request, body: Any, id: str, is_new: bool) -> WriteSubscription:
        """The command for a body. Raises: InvalidSubscription, QuotaExceeded."""
        document = await asyncio.to_thread(lambda: parse_subscription(body, self._context.read_support()))
        self._check_vault(document)
        await check_addresses(document.attributes, self._context.resolver)
        time = document.attributes["config"].get("starttime")
        credential = request.caller.without_grants or request.caller
        return WriteSubscription(
            xid=subscription_xid(id),
            is_new=is_new,
            attributes=document.attributes,
            secrets=document.secrets,
            missing_secrets=document.missing_secrets,
            dropped_secrets=document.dropped_secrets,
            secret_binding=document.secret_binding,
            starttime=await asyncio.to_thread(self._context.position_of_time, time) if time is not None else None,
            groups=credential.places,
            claims=credential.claims,
            max_owned=self._context.max_owned,
        )

    def _check_vault(self, document: SubscriptionDocument) -> None:
        """Checks that the server can store the secrets of a subscription (SUB-914).

        Raises: InvalidSubscription if there are secrets and the server has no master key.
        """
        if document.secrets and not self._context.registry.store.vault.has_key:
            reason = (
                "this server has no master key, so it cannot store secrets or URIs with a query; set ANNALS_MASTER_KEY"
            )
            raise invalid_subscription("credentialsunavailable", secret_pointer(min(document.secrets)), reason)

    async def _submit(
        self,
        request: Request,
        command: Any,
        build_response: BuildAnswer,
        condition: Callable[[WriteTransaction], None] | None = None,
    ) -> Recorded:
        command_bus = self._context.registry.command_bus
        recorded = await asyncio.wrap_future(command_bus.submit(command, request.caller, build_response, condition))
        note_position(recorded.position)
        return recorded

    async def _response(
        self, request: Request, recorded: Recorded, status: int, extra_headers: list[tuple[bytes, bytes]] | None = None
    ) -> Response:
        subscription: Subscription = recorded.answer
        quick_view = self._context.registry.readers.quick_view
        document = await asyncio.to_thread(
            lambda: self._read_handler.render(subscription, quick_view(), request.caller)
        )
        headers = [*subscription_headers(subscription, request.caller), *(extra_headers or [])]
        return json_response(request, status, document, headers, recorded.xregcorrelationid)


def _written_subscription(transaction: WriteTransaction, recorded: Recorded) -> Subscription | None:
    """The subscription as a command left it."""
    id = recorded.processed[0].rpartition("/")[2]
    return TransactionView(transaction).subscriptions.get(id)
