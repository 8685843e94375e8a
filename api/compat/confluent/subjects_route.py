"""`/-/subjects`: the subjects of Confluent's API with their entities, one page of them in one answer (UI-69)."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from starlette.types import Receive

from annals.api.compat.confluent.view import ConfluentView
from annals.api.feeds.rights import check_reads_something
from annals.api.http.json_bodies import json_response
from annals.api.http.methods import read_only_options
from annals.api.http.query_params import QueryParams, invalid_param, parse_number, query_params, single_value
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.api.registry.open_registry import Registry
from annals.api.xregistry.snapshots import Snapshots
from annals.domain.confluent.settings import LEVEL, effective_config, effective_mode
from annals.domain.confluent.subjects import ContextIds, Subject, parse_context
from annals.domain.values.json_text import Json
from annals.projections.entities.view import View

SUBJECTS: Final = "subjects"
#: Maximum number of subjects in an answer.
MAX_LIMIT: Final = 1000
_DEFAULT_LIMIT: Final = 100
_MAX_OFFSET: Final = 10**9 - 1


@dataclass(frozen=True, slots=True)
class _SubjectsRequest:
    """The parameters. context: None for all."""

    context: str | None
    offset: int
    limit: int


class SubjectsRoutes:
    """The surface of `/-/subjects`. default_level: compatibility where none is set."""

    def __init__(self, registry: Registry, context_ids: ContextIds, default_level: str) -> None:
        self._registry = registry
        self._context_ids = context_ids
        self._default_level = default_level
        self._snapshots = Snapshots(registry.readers, registry.definitions, registry.store.clock)

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`. Raises: Forbidden, BadRequest, MethodNotAllowed."""
        if (options := read_only_options(request)) is not None:
            return options
        check_reads_something(request.caller)
        parameters = query_params(request, ("context", "offset", "limit", "asof"))
        wanted, asof = _parse(parameters), single_value(parameters, "asof")
        if asof is None:
            return await asyncio.to_thread(
                lambda: self._answer(request, wanted, self._registry.readers.latest_view().seen_by(request.caller))
            )
        snapshot = await self._snapshots.find(asof)

        def read_past() -> Response:
            with self._registry.readers.view() as view:
                return self._answer(request, wanted, snapshot.view(view).seen_by(request.caller))

        return replace(snapshot, is_immutable=False).add_headers(await asyncio.to_thread(read_past), request)

    def _answer(self, request: Request, wanted: _SubjectsRequest, view: View) -> Response:
        shown = ConfluentView(view, request.caller, self._context_ids, self._registry.checker, self._default_level)
        contexts = [*shown.groups] if wanted.context is None else [wanted.context]
        subjects = shown.subjects(contexts, with_deleted=False, only_deleted=False)
        page = subjects[wanted.offset : wanted.offset + wanted.limit]
        body: dict[str, Json] = {
            "count": len(subjects),
            "contexts": [*shown.groups],
            "subjects": [_members(shown, subject) for subject in page],
        }
        return json_response(request, 200, body)


def _parse(parameters: QueryParams) -> _SubjectsRequest:
    """Raises: BadRequest."""
    text = single_value(parameters, "context")
    context = parse_context(text) if text else None
    if text and context is None:
        raise invalid_param("context", "it takes the name of a context, such as .team")
    limit = parse_number("limit", single_value(parameters, "limit"), 1, MAX_LIMIT) or _DEFAULT_LIMIT
    offset = parse_number("offset", single_value(parameters, "offset"), 0, _MAX_OFFSET) or 0
    return _SubjectsRequest(context, offset, limit)


def _members(view: ConfluentView, subject: Subject) -> Mapping[str, Any]:
    versions = view.versions(subject).live
    settings = view.registry.settings
    mode = "READONLY" if view.is_readonly(subject) else effective_mode(subject, settings)
    latest = versions[-1] if versions else None
    return {
        "subject": subject.qualified,
        "context": subject.context,
        "xid": latest.resource if latest else None,
        "versions": len(versions),
        "latestid": latest.id if latest else None,
        "level": effective_config(subject, settings, view.default_level)[LEVEL],
        "mode": mode,
    }
