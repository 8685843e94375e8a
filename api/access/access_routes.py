"""`/-/access/<path>`: who has which role at a place, and by what (ACC-66)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import chain
from typing import Final

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
from annals.domain.access.grants import Grant
from annals.domain.access.held_roles import roles_by_grant, roles_by_key, roles_by_setting
from annals.domain.access.keys import ApiKey
from annals.domain.access.roles import Caller, group_of
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
        return await asyncio.to_thread(self._answer, request, place)

    def _answer(self, request: Request, place: str) -> Response:
        """Settings are those of now, also in an answer about the past, which marks them."""
        moment = moment_of(self._context, single_params(request, ASOF)[ASOF], request)
        now = self._time_of(moment)
        given = map(Grant.from_entity, moment.entities(grants.COLLECTION).all())
        found = map(ApiKey.from_entity, moment.entities(keys.COLLECTION).all())
        recorded = chain(roles_by_grant(place, given, now), roles_by_key(place, found, now))
        current = ({**held._asdict(), "asofnow": True} for held in roles_by_setting(place, self._listed()))
        roles = [*(held._asdict() for held in recorded), *current]
        return answer_json(request, 200, {"at": place, "roles": roles}, moment.headers)

    def _time_of(self, moment: Moment) -> datetime:
        last = moment.view.log.interaction_at(moment.view.position()) if moment.is_past else NO_INTERACTION
        return self._context.registry.store.clock() if last is NO_INTERACTION else parse_time(last.time)


def _place(subpath: Sequence[str]) -> str:
    """The place of an entity: its Group, or the registry for what is in none. Empty for a path of empty names."""
    if not any(subpath):
        return xids.REGISTRY
    return (group_of(xids.join(*subpath)) or xids.REGISTRY) if all(subpath) else ""
