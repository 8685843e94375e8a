"""`/-/restore`: restores a past state, as one interaction (FLAG-81)."""

from __future__ import annotations

import asyncio
from typing import Final, NamedTuple

from starlette.types import Receive

from annals.api.http import conditional
from annals.api.http.json_bodies import json_response
from annals.api.http.limits import read_body
from annals.api.http.methods import POST_METHODS, MethodNotAllowed, check_caller, post_only_options
from annals.api.http.query_params import QueryParams, invalid_param, query_params, single_value
from annals.api.http.request import Request
from annals.api.http.response import CORRELATION_HEADER, Response
from annals.api.registry.definitions import RegistryDefinitions
from annals.api.registry.open_registry import Registry
from annals.api.xregistry.dryrun import dry_run, findings_headers
from annals.api.xregistry.request.flags import KNOWN_FLAGS
from annals.api.xregistry.request.paths import PathKind, RequestTarget, availability_name, resolve_path
from annals.commands.store.hashes import Interaction
from annals.commands.store.write_transaction import Recorded
from annals.domain.access.roles import Caller
from annals.domain.decisions.commands import Restore
from annals.domain.errors import problems
from annals.domain.errors.problems import Problem
from annals.domain.registry.events import EntityCreated, EntityDeleted, EntityUpdated
from annals.domain.values import xid as xids
from annals.projections.log.answer_position import note_position

RESTORE: Final = "restore"

_ASOF: Final = "asof"
_DRYRUN: Final = "dryrun"
_INCLUDE: Final = "include"
#: Parts that a restore of the registry leaves unchanged unless `include` names them.
_INCLUDABLE_NAMES: Final = ("model", "capabilities")
#: Kinds that cannot be restored, because they only show other entities.
_READ_ONLY_KINDS: Final = frozenset((PathKind.EXPORT, PathKind.CAPABILITIESOFFERED))
_COUNTED_EVENTS: Final = {"created": EntityCreated, "updated": EntityUpdated, "deleted": EntityDeleted}


class _RestoreRequest(NamedTuple):
    """A parsed request. interaction: the interaction whose end state is restored."""

    command: Restore
    owner: str
    interaction: Interaction
    dryrun: bool


class RestoreRoutes:
    """The surface of `/-/restore`."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._definitions_cache = registry.definitions

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`."""
        if (options := post_only_options(request)) is not None:
            return options
        check_caller(request)
        await read_body(request, receive, 0)  # the log has everything that a restore needs, so a body is refused
        try:
            return await self._execute(request, await self._registry.readers.read(self._parse, request))
        except Problem as problem:
            raise MethodNotAllowed(problem, POST_METHODS) if problem.status == 405 else problem from None

    def _parse(self, request: Request) -> _RestoreRequest:
        view = self._registry.readers.quick_view()
        target = _parse_target(request, self._definitions_cache.current(view))
        parameters = _parse_parameters(request)
        asof = single_value(parameters, _ASOF)
        if not asof:
            raise invalid_param(_ASOF, "it is needed: a position of the log, a time or a correlation id")
        interaction = view.log.as_of(asof, self._registry.store.clock())
        command = Restore(_restored_xid(target), interaction.last, _parse_include(parameters, target))
        return _RestoreRequest(command, target.row_xid, interaction, _DRYRUN in parameters)

    async def _execute(self, request: Request, restore_request: _RestoreRequest) -> Response:
        command_bus, condition = self._registry.command_bus, conditional.write_condition(request, restore_request.owner)
        if restore_request.dryrun:
            return await dry_run(request, command_bus, restore_request.command, condition)
        recorded = await asyncio.wrap_future(
            command_bus.submit(restore_request.command, request.caller, condition=condition)
        )
        note_position(recorded.position)
        correlation_id = recorded.xregcorrelationid
        headers = [
            *findings_headers(recorded),
            *([(CORRELATION_HEADER, correlation_id.encode())] if correlation_id is not None else []),
        ]
        return json_response(request, 200, _summary_document(restore_request, recorded, request.caller), headers)


def _parse_target(request: Request, definitions: RegistryDefinitions) -> RequestTarget:
    """The target to restore. Raises: NotFound; ActionNotSupported if the capabilities make it read-only."""
    target = resolve_path(request.segments[2:], definitions.model, request.details, is_write=True)
    if target.kind in _READ_ONLY_KINDS:
        raise problems.NotFound(target.xid)
    availability = "modelsource" if target.kind is PathKind.MODEL else availability_name(target.kind)
    if not definitions.capabilities.for_caller(request.caller).available.get(availability):
        detail = f'"{availability}" is not mutable according to the "available" capability'
        raise problems.ActionNotSupported(action=request.method, detail=detail)
    return target


def _restored_xid(target: RequestTarget) -> str:
    return xids.MODEL if target.kind is PathKind.MODELSOURCE else target.xid


def _parse_parameters(request: Request) -> QueryParams:
    """The parameters. Raises: BadFlag for a flag of ordinary writes; BadRequest for any other unknown parameter."""
    parameters = query_params(request, {_ASOF, _DRYRUN, _INCLUDE, *KNOWN_FLAGS})
    for name in parameters:
        if name in KNOWN_FLAGS:
            raise problems.BadFlag(flag=name)
    return parameters


def _parse_include(parameters: QueryParams, target: RequestTarget) -> frozenset[str]:
    """The parts to restore together with the registry. Raises: BadRequest."""
    names = frozenset(part.strip() for value in parameters.get(_INCLUDE, ()) for part in value.split(","))
    if _INCLUDE in parameters and target.kind is not PathKind.REGISTRY:
        raise invalid_param(_INCLUDE, "it is allowed for the root only")
    for name in sorted(names - set(_INCLUDABLE_NAMES)):
        raise invalid_param(_INCLUDE, f"{name!r} is not one of: {', '.join(_INCLUDABLE_NAMES)}")
    return names


def _summary_document(restore_request: _RestoreRequest, recorded: Recorded, caller: Caller) -> dict[str, object]:
    """The response: restored target and moment, numbers of changed entities, and the last log position."""
    interaction = restore_request.interaction
    # The interaction may be one of hidden entities only.
    id = {"xregcorrelationid": interaction.xregcorrelationid} if caller.sees_everything else {}
    events = [event for _, event in recorded.events]
    return {
        "xid": restore_request.command.xid,
        "asof": {"position": interaction.last, "time": interaction.time, **id},
        **{name: sum(isinstance(event, kind) for event in events) for name, kind in _COUNTED_EVENTS.items()},
        "position": recorded.position,
    }
