"""Answers to requests that were answered before, while the registry has not changed.

Serializers of many processes ask for the same few schemas, and each producer registers the schema that all have
registered. Such an answer depends on the request, on what its caller may see, and on the moment of the registry.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Final, NamedTuple

from annals.api.compat.confluent.responses import REQUEST_ID, request_id
from annals.api.http.query_params import all_query_params
from annals.api.http.request import Request
from annals.api.http.response import CORRELATION_HEADER, Response
from annals.projections.log.answer_position import note_position

#: Bytes of requests and answers that are kept at most, and of one of them with its answer.
MAX_BYTES: Final = 8 << 20
MAX_ENTRY: Final = 64 << 10
#: Answers that are kept at most.
MAX_ANSWERS: Final = 5_000
#: Parameters with which an answer depends on more, or is not asked for twice. The text of a format may not be made in
#: time, and then the text as it is stored is shown.
_OTHER_PARAMS: Final = frozenset(("asof", "dryrun", "format"))
#: Headers on which answers depend.
_HEADERS: Final = (b"accept", b"content-type", b"confluent-accept-unknown-properties")


class LogMoment(NamedTuple):
    """A position of the log, and its generation (see `KnownLogEnd`)."""

    generation: int
    position: int


class AnswerCache:
    """The answers of one moment. Not thread-safe."""

    def __init__(self) -> None:
        self._moment = LogMoment(0, -1)
        self._answers: dict[Hashable, Response] = {}
        self._bytes = 0

    async def answer(
        self, request: Request, content: bytes, moment: LogMoment, compute_answer: Callable[[], Awaitable[Response]]
    ) -> Response:
        """The answer to a request; a new one if the same was not asked at this moment.

        content: of its body. moment: of the registry when the request was received, or later.
        Raises: what `compute_answer` raises.
        """
        if len(content) > MAX_ENTRY or not _OTHER_PARAMS.isdisjoint(all_query_params(request)):
            return await compute_answer()
        if moment > self._moment:
            self._answers, self._moment, self._bytes = {}, moment, 0
        key = _key(request, content)
        kept = self._answers.get(key) if moment == self._moment else None
        if kept is not None:
            note_position(moment.position)
            return Response(kept.status, [*kept.headers, request_id(request)], kept.body)
        response = await compute_answer()
        # What was read meanwhile shows this moment or a later one. If a later one exists, this is not found again.
        if moment == self._moment:
            self._keep(key, _size(request, content), response)
        return response

    def _keep(self, key: Hashable, request_size: int, response: Response) -> None:
        headers = [header for header in response.headers if header[0] != REQUEST_ID]
        has_changed = any(name == CORRELATION_HEADER for name, _ in headers)
        if has_changed or response.status != 200 or not isinstance(response.body, bytes):
            return
        size = request_size + len(response.body)
        if size <= MAX_ENTRY and self._bytes + size <= MAX_BYTES and len(self._answers) < MAX_ANSWERS:
            self._answers[key] = Response(200, headers, response.body)
            self._bytes += size


def _key(request: Request, content: bytes) -> Hashable:
    """All of a request that its answer depends on."""
    return request.method, request.raw_path, request.query, request.caller.rights, _headers(request), content


def _headers(request: Request) -> tuple[tuple[bytes, bytes], ...]:
    return tuple(header for header in request.headers if header[0] in _HEADERS)


def _size(request: Request, content: bytes) -> int:
    """The bytes of what a client has sent of a key."""
    headers = sum(len(value) for _, value in _headers(request))
    return len(request.raw_path) + len(request.query) + headers + len(content)
