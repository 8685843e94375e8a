"""`/-/access/<path>`: who has which role at a place, and by what (ACC-66)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from starlette.types import Receive

from annals.api.access.collections import (
    ASOF,
    AccessContext,
    Moment,
    answer_by_method,
    answer_json,
    moment_of,
    single_params,
)
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.commands.store.clock import parse_time
from annals.commands.store.hashes import NO_INTERACTION
from annals.domain.access import grants, keys
from annals.domain.access.grants import CALLER_SUBJECT, Grant
from annals.domain.access.keys import ApiKey
from annals.domain.access.places import matches
from annals.domain.access.roles import Caller, Role, group_of, highest_role
from annals.domain.errors.http_errors import Forbidden
from annals.domain.values import xid as xids

ACCESS: Final = "access"

#: The callers that the settings list, with where each is listed.
ListedCallers = Callable[[], Sequence[tuple[Caller, str]]]


class AccessRoutes:
    """The surface of `/-/access`. listed: the callers that the settings name."""

    def __init__(self, context: AccessContext, listed: ListedCallers) -> None:
        self._context = context
        self._listed = listed

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`. Raises: Forbidden, ApiNotFound, BadRequest, MethodNotAllowed."""
        place = _place(request.segments[2:])
        return await answer_by_method(request, receive, {"GET": self._read} if place else None, ())

    async def _read(self, request: Request, receive: Receive) -> Response:
        place = _place(request.segments[2:])
        if not request.caller.administers(place):
            raise Forbidden(caller=request.caller.name)

        def read() -> Response:
            moment = moment_of(self._context, single_params(request, ASOF)[ASOF], request)
            entries = [*_granted(moment, place, self._now(moment)), *self._from_settings(place)]
            return answer_json(request, 200, {"at": place, "roles": entries}, moment.headers)

        return await asyncio.to_thread(read)

    def _now(self, moment: Moment) -> Any:
        if not moment.is_past:
            return self._context.registry.store.clock()
        last = moment.view.log.interaction_at(moment.view.position())
        return self._context.registry.store.clock() if last is NO_INTERACTION else parse_time(last.time)

    def _from_settings(self, place: str) -> Iterator[dict[str, Any]]:
        """Settings as they are now, also in an answer about the past."""
        for caller, origin in self._listed():
            if (role := _role_at(caller, place)) is not None:
                yield {"subject": f"{CALLER_SUBJECT}{caller.name}", "role": role, "by": origin, "asofnow": True}


def _granted(moment: Moment, place: str, now: Any) -> Iterator[dict[str, Any]]:
    for grant in map(Grant.from_entity, moment.entities(grants.COLLECTION).all()):
        if grant.holds_at(now) and (grant.at == xids.REGISTRY or matches(grant.at, place)):
            yield {"subject": grant.subject, "role": grant.role, "by": f"{grants.COLLECTION}/{grant.id}"}
    for key in map(ApiKey.from_entity, moment.entities(keys.COLLECTION).all()):
        if now < key.expires and (role := _role_at(key.caller, place)) is not None:
            yield {"subject": f"{CALLER_SUBJECT}{key.caller.name}", "role": role, "by": f"{keys.COLLECTION}/{key.id}"}


def _role_at(caller: Caller, place: str) -> Role | None:
    if place == xids.REGISTRY:
        return caller.role
    return highest_role(caller.role, *(role for own, role in caller.groups.items() if matches(own, place)))


def _place(subpath: Sequence[str]) -> str:
    """The place that a path names: the registry, or the Group that contains an entity; empty for another path."""
    if not subpath or subpath == ("",):
        return xids.REGISTRY
    return group_of(xids.join(*subpath)) if all(subpath) else ""
