"""`/subscriptions/{id}/actions/*`: records an action in the log; the deliverer reads it there and acts on it."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, Final

from starlette.types import Receive

from api.http.query_params import query_params
from api.http.request import Request
from api.http.response import Response
from api.subscriptions.context import (
    SubscriptionApiContext,
    check_writer,
    find_subscription,
    position_of_time,
    subscription_xid,
)
from api.subscriptions.request_params import read_optional_json, write_condition
from api.subscriptions.responses import json_response
from api.xregistry.dryrun import dry_run
from commands.store.log import WriteTransaction as Transaction
from domain.decisions.commands import ControlSubscription
from domain.errors import problems
from domain.errors.http_errors import ReplayRunning
from domain.model.rfc3339 import to_utc
from domain.subscriptions.error_places import ErrorPlace
from domain.subscriptions.subscription import Subscription
from domain.values.json_text import Json

_NAMES: Final = frozenset(("pause", "resume", "verify", "replay"))
_REPLAY: Final = ("fromposition", "fromtime", "toposition", "parallel")
#: Delivery states in which `resume` changes nothing.
_RUNNING: Final = frozenset(("active", "paused"))
_DRYRUN: Final = "dryrun"


class SubscriptionActionHandler:
    """Handles POST of an action: 202 with the status (SUB-509)."""

    def __init__(self, parts: SubscriptionApiContext) -> None:
        self._parts = parts

    async def answer(self, request: Request, receive: Receive) -> Response:
        """The response to an action. Raises: Problem."""
        id, name = request.segments[1], request.segments[3]
        if name not in _NAMES:
            raise problems.ApiNotFound()
        dryrun = _DRYRUN in query_params(request, (_DRYRUN,))
        found = await asyncio.to_thread(self._find, request, id)
        check_writer(request.caller)
        given = await read_optional_json(request, receive, self._parts.body)
        arguments = await asyncio.to_thread(self._arguments, name, given)
        stopped = await asyncio.to_thread(self._looked, name, found)
        command = ControlSubscription(subscription_xid(id), name, arguments, stopped)
        holds = (
            _no_other_replay(found, write_condition(request, command.xid, request.caller)) if name == "replay" else None
        )
        holds = holds or write_condition(request, command.xid, request.caller)
        if dryrun:
            return await dry_run(request, self._parts.registry.command_bus, command, holds, own=True)
        return await self.record(request, command, holds)

    async def record(self, request: Request, command: ControlSubscription, holds: Any) -> Response:
        """Records a command and returns the status after it."""
        road = self._parts.registry.command_bus
        recorded = await asyncio.wrap_future(road.submit(command, request.caller, condition=holds))
        status = await asyncio.to_thread(self._status, request, name=command.name)
        return json_response(request, 202, status, xregcorrelationid=recorded.xregcorrelationid)

    def _find(self, request: Request, id: str) -> Subscription:
        return find_subscription(self._parts.registry.readers.quick_view(), id, request.caller)

    def _status(self, request: Request, name: str) -> Mapping[str, Any]:
        found = self._find(request, request.segments[1])
        if name == "pause":
            self._parts.deliveries.wait_until_applied(found)
        return self._parts.deliveries.status(found)

    def _looked(self, name: str, found: Subscription) -> bool:
        """Whether deliveries have stopped without a `pause`. Raises: ReplayRunning."""
        if name == "replay" and self._parts.deliveries.is_replaying(found):
            raise ReplayRunning()
        return name == "resume" and self._parts.deliveries.status(found).get("state") not in _RUNNING

    def _arguments(self, name: str, given: Any) -> Mapping[str, Json]:
        """The arguments of an action, parsed from its body. Raises: InvalidSubscription."""
        place = ErrorPlace()
        if not isinstance(given, dict):
            raise place.error("type", "an object is needed")
        for member in given:
            if name != "replay" or member not in _REPLAY:
                raise place.at(member).error("unknown", f"the action {name} does not take this member")
        return parse_replay_range(given, self._position) if name == "replay" else {}

    def _position(self, time: str) -> int:
        return position_of_time(self._parts.registry.readers.quick_view().log, time)


def parse_replay_range(given: Mapping[str, Any], position: Any) -> dict[str, Json]:
    """The range of positions that a replay covers (SUB-834).

    position: returns the log position of a time. Raises: InvalidSubscription.
    """
    place = ErrorPlace()
    if (given.get("fromposition") is None) == (given.get("fromtime") is None):
        raise place.at("fromposition").error("required", "either fromposition or fromtime is needed")
    found: dict[str, Json] = {}
    for name, member in (("from", "fromposition"), ("to", "toposition")):
        if given.get(member) is not None:
            found[name] = _position(given[member], place.at(member))
    if given.get("fromtime") is not None:
        found["from"] = position(_time(given["fromtime"], place.at("fromtime")))
    if not isinstance(given.get("parallel") or False, bool):
        raise place.at("parallel").error("type", "true or false is needed")
    return found | ({"parallel": True} if given.get("parallel") else {})


def _position(given: Any, place: ErrorPlace) -> int:
    if type(given) is not int or given < 0:
        raise place.error("value", "a position of the log is needed")
    return max(1, given)


def _time(given: Any, place: ErrorPlace) -> str:
    try:
        return to_utc(given)
    except (ValueError, OverflowError, TypeError) as error:
        raise place.error("value", f"an RFC 3339 time is needed: {error}") from None


def _no_other_replay(found: Subscription, holds: Any) -> Any:
    """The same condition, which also fails if another caller has requested a replay in the meantime."""

    def still(transaction: Transaction) -> None:
        holds(transaction)
        entity = transaction.world.get(subscription_xid(found.id))
        since = entity is not None and entity.position != found.position
        if since and entity and entity.private.get("action", {}).get("name") == "replay":
            raise ReplayRunning()

    return still
