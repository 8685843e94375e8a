"""The progress of an import as a stream of events, which ends with its result (UI-123)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final

from annals.api.http.problem_response import failure_problem, problem_body, root_link
from annals.api.http.request import Request
from annals.api.http.response import UNBUFFERED, Response
from annals.commands.command_bus import CommandBus
from annals.commands.store.database.outages import describe_outage
from annals.commands.store.write_transaction import Recorded
from annals.domain.decisions.commands import Command
from annals.domain.decisions.phases import Phase
from annals.domain.errors.problems import Problem
from annals.domain.registry.events import EntityCreated, EntityDeleted, EntityUpdated
from annals.domain.values.json_text import Json, dumps

_LOG: Final = logging.getLogger("annals")
_EVENT_STREAM: Final = b"text/event-stream"
_HEADERS: Final = [(b"content-type", _EVENT_STREAM), (b"cache-control", b"no-store"), UNBUFFERED]
_COUNTED: Final = {"created": EntityCreated, "updated": EntityUpdated, "deleted": EntityDeleted}


def wants_progress(request: Request) -> bool:
    """Whether the client takes a stream of events."""
    return _EVENT_STREAM.decode() in (request.header(b"accept") or "")


def count_events(recorded: Recorded) -> dict[str, Json]:
    """How many entities a command has created, updated and deleted."""
    events = [event for _, event in recorded.events]
    return {name: sum(isinstance(event, kind) for event in events) for name, kind in _COUNTED.items()}


def stream_progress(request: Request, command_bus: CommandBus, command: Command, report: list[Json]) -> Response:
    """The response to an import, which begins before it is done. Clients that leave do not stop it.

    Events: `progress` with phase, done and total; then `done` with the result, or `refused` with the problem.
    """
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[dict[str, Json] | None]()

    def put(item: dict[str, Json] | None) -> None:
        with suppress(RuntimeError):  # the loop has ended; the command goes on
            loop.call_soon_threadsafe(queue.put_nowait, item)

    def report_phase(phase: Phase, done: int, total: int) -> None:
        put({"phase": phase, "done": done, "total": total})

    future = command_bus.submit(command, request.caller, report_phase=report_phase)
    future.add_done_callback(lambda _: put(None))
    return Response(200, [*_HEADERS, root_link(request.base)], _events(request, queue, future, report))


async def _events(
    request: Request, queue: asyncio.Queue[dict[str, Json] | None], future: Future[Recorded], report: list[Json]
) -> AsyncGenerator[bytes, None]:
    while (item := await queue.get()) is not None:
        yield _event("progress", item)
    try:
        recorded = future.result()
    except Exception as error:
        problem = _problem_of(error)
        yield _event("refused", {**problem_body(problem, request), "status": problem.status})
        return
    id = recorded.xregcorrelationid
    yield _event("done", {"result": count_events(recorded), "report": report, "xregcorrelationid": id})


def _problem_of(error: Exception) -> Problem:
    if isinstance(error, Problem):
        return error
    outage = describe_outage(error)
    _LOG.error("an import has failed: %s", outage or error, exc_info=None if outage else error)
    return failure_problem(error, outage)


def _event(name: str, data: dict[str, Any]) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (name.encode(), dumps(data))
