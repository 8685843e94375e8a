"""`/subscriptions/{id}/actions/*`: records an action in the log; the deliverer reads it there and acts on it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

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
from annals.api.subscriptions.request_params import read_optional_json, write_condition
from annals.api.subscriptions.responses import json_response
from annals.api.xregistry.dryrun import dry_run
from annals.commands.store.write_transaction import WriteTransaction
from annals.domain.decisions.commands import ControlSubscription
from annals.domain.errors import problems
from annals.domain.errors.http_errors import ReplayRunning
from annals.domain.model.validation.rfc3339 import to_utc
from annals.domain.subscriptions.error_places import ErrorPlace
from annals.domain.subscriptions.subscription import Subscription
from annals.domain.values.json_text import Json
from annals.projections.log.answer_position import note_position

_ACTION_NAMES: Final = frozenset(("pause", "resume", "verify", "replay"))
_REPLAY_MEMBERS: Final = ("fromposition", "fromtime", "toposition", "parallel")
#: Delivery states in which `resume` changes nothing.
_RUNNING_STATES: Final = frozenset(("active", "paused"))
_DRYRUN: Final = "dryrun"


class SubscriptionActionHandler:
    """Handles POST of an action: 202 with the status (SUB-509)."""

    def __init__(self, context: SubscriptionApiContext) -> None:
        self._context = context

    async def answer(self, request: Request, receive: Receive) -> Response:
        """The response to an action. Raises: Problem."""
        id, name = request.segments[1], request.segments[3]
        if name not in _ACTION_NAMES:
            raise problems.ApiNotFound()
        dryrun = _DRYRUN in query_params(request, (_DRYRUN,))
        subscription = await asyncio.to_thread(self._find, request, id)
        check_writer(request.caller)
        body = await read_optional_json(request, receive, self._context.max_body)
        arguments = await asyncio.to_thread(self._arguments, name, body)
        is_stopped = await asyncio.to_thread(self._has_stopped, name, subscription)
        command = ControlSubscription(subscription_xid(id), name, arguments, is_stopped)
        condition = (
            _no_other_replay(subscription, write_condition(request, command.xid, request.caller))
            if name == "replay"
            else None
        )
        condition = condition or write_condition(request, command.xid, request.caller)
        if dryrun:
            return await dry_run(request, self._context.registry.command_bus, command, condition, is_unrestricted=True)
        return await self.record(request, command, condition)

    async def record(self, request: Request, command: ControlSubscription, condition: Any) -> Response:
        """Records a command and returns the status after it."""
        command_bus = self._context.registry.command_bus
        recorded = await asyncio.wrap_future(command_bus.submit(command, request.caller, condition=condition))
        note_position(recorded.position)
        status = await asyncio.to_thread(self._status, request, name=command.name)
        return json_response(request, 202, status, xregcorrelationid=recorded.xregcorrelationid)

    def _find(self, request: Request, id: str) -> Subscription:
        return find_subscription(self._context.registry.readers.quick_view(), id, request.caller)

    def _status(self, request: Request, name: str) -> Mapping[str, Any]:
        subscription = self._find(request, request.segments[1])
        if name in ("pause", "resume"):
            self._context.deliveries.wait_until_applied(subscription, needs_row=name == "resume")
        return self._context.deliveries.status(subscription)

    def _has_stopped(self, name: str, subscription: Subscription) -> bool:
        """Whether deliveries have stopped without a `pause`. Raises: ReplayRunning."""
        if name == "replay" and self._context.deliveries.is_replaying(subscription):
            raise ReplayRunning()
        return name == "resume" and self._context.deliveries.status(subscription).get("state") not in _RUNNING_STATES

    def _arguments(self, name: str, body: Any) -> Mapping[str, Json]:
        """The arguments of an action, parsed from its body. Raises: InvalidSubscription."""
        place = ErrorPlace()
        if not isinstance(body, dict):
            raise place.error("type", "an object is needed")
        for member in body:
            if name != "replay" or member not in _REPLAY_MEMBERS:
                raise place.child(member).error("unknown", f"the action {name} does not take this member")
        return parse_replay_range(body, self._context.position_of_time) if name == "replay" else {}


def parse_replay_range(body: Mapping[str, Any], position_of: Any) -> dict[str, Json]:
    """The range of positions that a replay covers (SUB-834).

    position_of: returns the log position of a time. Raises: InvalidSubscription.
    """
    place = ErrorPlace()
    if (body.get("fromposition") is None) == (body.get("fromtime") is None):
        raise place.child("fromposition").error("required", "either fromposition or fromtime is needed")
    replay_range: dict[str, Json] = {}
    for name, member in (("from", "fromposition"), ("to", "toposition")):
        if body.get(member) is not None:
            replay_range[name] = _parse_position(body[member], place.child(member))
    if body.get("fromtime") is not None:
        replay_range["from"] = position_of(_parse_time(body["fromtime"], place.child("fromtime")))
    if not isinstance(body.get("parallel") or False, bool):
        raise place.child("parallel").error("type", "true or false is needed")
    return replay_range | ({"parallel": True} if body.get("parallel") else {})


def _parse_position(value: Any, place: ErrorPlace) -> int:
    if type(value) is not int or value < 0:
        raise place.error("value", "a position of the log is needed")
    return max(1, value)


def _parse_time(value: Any, place: ErrorPlace) -> str:
    try:
        return to_utc(value)
    except (ValueError, OverflowError, TypeError) as error:
        raise place.error("value", f"an RFC 3339 time is needed: {error}") from None


def _no_other_replay(subscription: Subscription, condition: Any) -> Any:
    """The same condition, which also fails if another caller has requested a replay in the meantime."""

    def check(transaction: WriteTransaction) -> None:
        condition(transaction)
        entity = transaction.world.get(subscription_xid(subscription.id))
        has_changed = entity is not None and entity.position != subscription.position
        if has_changed and entity and entity.private.get("action", {}).get("name") == "replay":
            raise ReplayRunning()

    return check
