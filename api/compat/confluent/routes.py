"""`/compat/confluent`: Confluent Schema Registry's API. The table of its paths, and the surface that answers them.

Rules CSR-101 to CSR-116, CSR-201, CSR-202, CSR-301, CSR-905 to CSR-910.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple
from urllib.parse import unquote_to_bytes

from starlette.types import Receive

from annals.api.auth.callers import Authenticator
from annals.api.compat.confluent import importing, reading, reading_by_id, writing
from annals.api.compat.confluent.answer_cache import AnswerCache, LogMoment
from annals.api.compat.confluent.paths import BASE, CONTEXT_PATH
from annals.api.compat.confluent.reading import ConfluentRead, context_of_path
from annals.api.compat.confluent.request_params import QueryParams, parse_object
from annals.api.compat.confluent.responses import (
    error_response,
    json_response,
    list_chunks,
    problem_error,
    status_error,
)
from annals.api.compat.confluent.view import ConfluentView
from annals.api.compat.confluent.writing import ConfluentWrite, ConfluentWriter, Write
from annals.api.compat.request_params import read_content
from annals.api.feeds.rights import check_reads_something
from annals.api.http.browsers.cross_origin import check_form
from annals.api.http.limits import LARGE_BODY
from annals.api.http.problem_response import retry_headers
from annals.api.http.request import Request
from annals.api.http.response import Headers, Response
from annals.api.registry.open_registry import Registry
from annals.api.xregistry.snapshots import Snapshot, Snapshots
from annals.domain.confluent.errors import SchemaRegistryError
from annals.domain.confluent.subjects import (
    DEFAULT_CONTEXT,
    GROUPS,
    RESOURCES,
    ContextIds,
    group_xid,
    parse_subject,
)
from annals.domain.errors.problems import NotFound, Problem
from annals.domain.values import xid as xids
from annals.projections.entities.view import View
from annals.projections.log.answer_position import note_position

Read = Callable[[ConfluentRead], Response]
#: A request in a view.
InView = Callable[[ConfluentView], ConfluentRead]
#: The members of a list, which is sent while it is read.
ReadList = Callable[[ConfluentRead], Iterator[Any]]


@dataclass(frozen=True, slots=True)
class Route:
    """A path with its methods. pattern: segments; those in braces are variable. needs_model: it reads schemas.

    reads: answers by method that change nothing; a POST among them has a body. members: those of a list that answers
    GET. writes: answers that send a command. in_context: it exists below `/contexts/{context}` as well. is_import: its
    bodies have all versions of subjects. is_repeated: clients send the same requests again and again, and their answers
    depend on no check that may fail now and pass later.
    """

    pattern: str
    reads: Mapping[str, Read]
    writes: Mapping[str, Write]
    in_context: bool = True
    needs_model: bool = True
    is_import: bool = False
    members: ReadList | None = None
    is_repeated: bool = False

    @property
    def methods(self) -> list[str]:
        """The methods, for Allow."""
        head = ["HEAD"] if "GET" in self.handlers else []
        reads = [method for method in self.handlers if method not in self.writes]
        return [*reads, *head, *self.writes, "OPTIONS"]

    @property
    def handlers(self) -> Mapping[str, Callable[..., Any]]:
        """What answers each method but HEAD and OPTIONS."""
        lists: Mapping[str, ReadList] = {"GET": self.members} if self.members is not None else {}
        return {**lists, **self.reads, **self.writes}


class FoundRoute(NamedTuple):
    """A path of a request. parts: what its variables are. context: below which it is; None without."""

    route: Route
    parts: Mapping[str, str]
    context: str | None


_NONE: Final[Mapping[str, Write]] = {}
_SETTINGS: Final = (
    ("config", reading.read_config, {"PUT": writing.write_config, "DELETE": writing.delete_config}),
    ("mode", reading.read_mode, {"PUT": writing.write_mode, "DELETE": writing.delete_mode}),
)
ROUTES: Final = (
    Route("", {"GET": reading.root, "POST": reading.root}, _NONE, in_context=False, needs_model=False),
    Route("subjects", {}, _NONE, members=reading.list_subjects),
    Route(
        "subjects/{subject}",
        {"POST": reading.look_up_schema},
        {"DELETE": writing.delete_subject},
        is_repeated=True,
    ),
    Route(
        "subjects/{subject}/versions",
        {"GET": reading.list_versions},
        {"POST": writing.register_schema},
        is_repeated=True,
    ),
    Route(
        "subjects/{subject}/versions/{version}",
        {"GET": reading.read_version},
        {"DELETE": writing.delete_version},
        is_repeated=True,
    ),
    Route("subjects/{subject}/versions/{version}/schema", {"GET": reading.read_version_text}, _NONE),
    Route("subjects/{subject}/versions/{version}/referencedby", {"GET": reading.list_referrers}, _NONE),
    Route("subjects/{subject}/versions/{version}/tags", {"POST": writing.refuse_tags}, _NONE),
    Route("subjects/{subject}/metadata", {"GET": reading.find_by_metadata}, _NONE),
    Route("schemas", {}, _NONE, members=reading.list_schemas),
    Route("schemas/ids/{id}", {"GET": reading_by_id.read_schema}, _NONE, is_repeated=True),
    Route("schemas/ids/{id}/schema", {"GET": reading_by_id.read_schema_text}, _NONE, is_repeated=True),
    Route("schemas/ids/{id}/subjects", {"GET": reading_by_id.list_subjects_of_schema}, _NONE),
    Route("schemas/ids/{id}/versions", {"GET": reading_by_id.list_versions_of_schema}, _NONE),
    Route("schemas/guids/{guid}", {"GET": reading_by_id.read_schema_by_guid}, _NONE, is_repeated=True),
    Route("schemas/guids/{guid}/ids", {"GET": reading_by_id.list_ids_of_guid}, _NONE),
    Route("schemas/types", {"GET": reading.list_types}, _NONE, needs_model=False),
    Route("compatibility/subjects/{subject}/versions", {"POST": reading.check_compatibility}, _NONE),
    Route("compatibility/subjects/{subject}/versions/{version}", {"POST": reading.check_compatibility}, _NONE),
    *(
        Route(f"{name}{suffix}", {"GET": read}, writes)
        for name, read, writes in _SETTINGS
        for suffix in ("", "/{subject}")
    ),
    Route("contexts", {"GET": reading.list_contexts}, _NONE, in_context=False),
    Route("contexts/{context}", {}, {"DELETE": writing.delete_context}, in_context=False),
    Route("-/import", {}, {"POST": importing.import_subjects}, in_context=False, is_import=True),
    Route("v1/metadata/id", {"GET": reading.read_cluster}, _NONE, in_context=False, needs_model=False),
    Route("v1/metadata/version", {"GET": reading.read_server_version}, _NONE, in_context=False, needs_model=False),
    Route("v1/metadata/deployment", {"GET": reading.read_deployment}, _NONE, in_context=False, needs_model=False),
)
#: The templates of all paths, with those below a context.
PATH_TEMPLATES: Final = (
    *(f"{BASE}/{route.pattern}".rstrip("/") for route in ROUTES),
    *(f"{BASE}{CONTEXT_PATH}/{route.pattern}" for route in ROUTES if route.in_context),
)
#: Paths whose routes stay known.
_KNOWN_PATHS: Final = 5_000
_SEGMENTS: Final = [(route, [*filter(None, route.pattern.split("/"))]) for route in ROUTES]


@dataclass(frozen=True, slots=True)
class ConfluentSettings:
    """default_group: id of the Group that is the default context. default_level: compatibility where none is set.

    max_body, max_import: bytes of a body, and of one with all versions of subjects.
    """

    default_group: str
    default_level: str
    max_body: int
    max_import: int


class ConfluentRoutes:
    """The surface of all paths below `BASE`. It authenticates callers itself, because clients may send Basic."""

    def __init__(self, registry: Registry, authenticator: Authenticator, settings: ConfluentSettings) -> None:
        self._registry = registry
        self._authenticator = authenticator
        self._settings = settings
        self._context_ids = ContextIds(settings.default_group)
        self._writer = ConfluentWriter(registry.command_bus, registry.lookups)
        self._snapshots = Snapshots(registry.readers, registry.definitions, registry.store.clock)
        self._cache = AnswerCache()

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`; every refusal is an answer too. Raises: the errors of the database."""
        try:
            return await self._answer(request, receive)
        except SchemaRegistryError as error:
            if error.status == 404:  # counted if its caller does not see the Group
                self._authenticator.refusal(NotFound(request.path), request)
            return error_response(request, error)
        except Problem as problem:
            problem = self._authenticator.refusal(problem, request)
            is_unauthorized = problem.status == 401
            challenges = self._authenticator.challenges(request, is_token_too=True) if is_unauthorized else []
            return self.show_problem(problem, request, challenges)

    def show_problem(self, problem: Problem, request: Request, headers: Headers | None = None) -> Response:
        """The answer to a refused request, also to one that was refused elsewhere."""
        return error_response(request, problem_error(problem, request), [*(headers or []), *retry_headers(problem)])

    async def _answer(self, request: Request, receive: Receive) -> Response:
        request = await self._authenticator.authenticate(request, is_token_too=True)
        found = find_route(request.raw_path.removeprefix(BASE))
        if request.method == "OPTIONS":
            allow = ", ".join(found.route.methods).encode()
            return Response(204, [(b"allow", allow), (b"access-control-allow-methods", allow)])
        method = "GET" if request.method == "HEAD" else request.method
        if method not in found.route.handlers:
            allow_header: Headers = [(b"allow", ", ".join(found.route.methods).encode())]
            return error_response(request, status_error(405), allow_header)
        if method != "GET":
            check_form(request)
        has_body = method in ("POST", "PUT") and found.route.pattern != ""
        limit = self._settings.max_import if found.route.is_import else self._settings.max_body
        content = await read_content(request, receive, limit) if has_body else None
        position = await self._find_position() if found.route.needs_model else 0

        def compute_answer() -> Awaitable[Response]:
            return self._compute_answer(request, found, content, position)

        if not found.route.is_repeated:
            return await compute_answer()
        moment = LogMoment(self._registry.readers.generation, position)
        return await self._cache.answer(request, content or b"", moment, compute_answer)

    async def _find_position(self) -> int:
        """The position of the registry now. Raises: SchemaRegistryError, 404, if its model has no schemas (CSR-910)."""
        definitions = self._registry.definitions
        found = await self._registry.lookups.find(xids.REGISTRY, with_document=False)
        known, readers = definitions.definitions, self._registry.readers
        if found.definitions != known.positions:
            known = await readers.read(definitions.current, readers.quick_view())
        group = known.model.groups.get(GROUPS)
        if group is None or RESOURCES not in group.resources:
            raise status_error(404)
        return found.position

    async def _compute_answer(
        self, request: Request, found: FoundRoute, content: bytes | None, position: int
    ) -> Response:
        """position: of the registry, or an earlier one; the answer shows that one or a later one."""
        route, parts, context = found
        json_response(request, {})  # refuses an Accept that nothing fits before anything is changed
        method = "GET" if request.method == "HEAD" else request.method
        write, members = route.writes.get(method), route.members if method == "GET" else None
        params = QueryParams(request)
        self._check_flags(params, is_write=write is not None)
        body = await _parse_body(request, content) if content is not None else {}

        def in_view(view: ConfluentView) -> ConfluentRead:
            read = ConfluentRead(request, parts, context, params, body, view)
            if "subject" in parts:
                view.expect(read.scope)
            return read

        def read_latest() -> ConfluentRead:
            note_position(position)
            return in_view(self._view_at(request, self._registry.readers.quick_view()))

        if write is not None:
            return await write(self._writer, ConfluentWrite(request, params, read_latest))
        snapshot = await self._snapshot(params)
        if members is not None:
            response = await self._stream(request, members, in_view, snapshot)
        else:
            read = route.reads[method]
            response = await asyncio.to_thread(
                lambda: read(read_latest()) if snapshot is None else self._read_at(request, read, in_view, snapshot)
            )
        return response if snapshot is None else snapshot.add_headers(response, request)

    async def _snapshot(self, params: QueryParams) -> Snapshot | None:
        """The moment that a request asks about; None for now. Raises: SchemaRegistryError."""
        if not params.has("asof"):
            return None
        try:
            return await self._snapshots.find(params.text("asof"))
        except Problem as problem:
            raise SchemaRegistryError(400, problem.text()) from None

    async def _stream(
        self, request: Request, members: ReadList, in_view: InView, snapshot: Snapshot | None
    ) -> Response:
        """A list, which is read in one snapshot of the database while it is sent."""

        def job() -> Generator[Any, None, None]:
            with self._registry.readers.view() as current:
                view = snapshot.view(current) if snapshot is not None else current
                chunks = list_chunks(members(in_view(self._view_at(request, view))))
                first_chunk = next(chunks)  # may refuse the request
                yield json_response(request, None).headers
                yield first_chunk
                yield from chunks

        headers, body = await self._registry.streams.start(job)
        return Response(200, headers, body)

    def _read_at(self, request: Request, read: Read, in_view: InView, snapshot: Snapshot) -> Response:
        with self._registry.readers.view() as view:
            return read(in_view(self._view_at(request, snapshot.view(view))))

    def _view_at(self, request: Request, view: View) -> ConfluentView:
        """A view as the caller of a request sees it. Raises: Problem for a caller who may read nothing."""
        check_reads_something(request.caller)
        view = view.seen_by(request.caller)
        return ConfluentView(
            view, request.caller, self._context_ids, self._registry.checker, self._settings.default_level
        )

    def _check_flags(self, params: QueryParams, *, is_write: bool) -> None:
        wrong = "asof" if is_write else "dryrun"
        if params.has(wrong):
            kind = "writes" if is_write else "reads"
            raise SchemaRegistryError(400, f'The parameter "{wrong}" is not for {kind}')


@lru_cache(_KNOWN_PATHS)
def find_route(raw_path: str) -> FoundRoute:
    """The route of a path. raw_path: below `BASE`.

    Raises: SchemaRegistryError for an unknown path.
    """
    segments = [_decode(segment) for segment in raw_path.rstrip("/").split("/")[1:]]
    if segments[:1] == ["associations"]:
        raise SchemaRegistryError(40410, "Associations are not kept here")
    context: str | None = None
    if segments[:1] == ["contexts"] and len(segments) > 1:
        context = context_of_path(segments[1])
        is_below = len(segments) > 2
        segments = segments[2:] if is_below else segments
    else:
        is_below = False
    for route, pattern in _SEGMENTS:
        parts = _match(pattern, segments)
        if parts is not None and (route.in_context or not is_below):
            return FoundRoute(route, parts, context)
    raise status_error(404)


def groups_of_path(raw_path: str, context_ids: ContextIds) -> tuple[str, ...]:
    """The xids of the Groups of which one stands for the context that a path names, by itself or with its subject.

    Empty for a path that names no context, such as that of a schema by its id, or that is unknown. raw_path: with
    `BASE`.
    """
    try:
        _, parts, context = find_route(raw_path.removeprefix(BASE))
    except SchemaRegistryError:
        return ()
    if "subject" in parts:
        context = parse_subject(parts["subject"], context or DEFAULT_CONTEXT).context
    return tuple(map(group_xid, context_ids.candidates(context))) if context else ()


def _match(pattern: list[str], segments: list[str]) -> dict[str, str] | None:
    if len(pattern) != len(segments):
        return None
    parts: dict[str, str] = {}
    for expected, segment in zip(pattern, segments, strict=True):
        if expected.startswith("{"):
            parts[expected[1:-1]] = segment
        elif expected != segment:
            return None
    return parts


def _decode(segment: str) -> str:
    """A segment as text; a plus is a plus. Raises: SchemaRegistryError, 404, for bytes that are no UTF-8."""
    try:
        return unquote_to_bytes(segment.encode("latin-1")).decode()
    except UnicodeDecodeError:
        raise SchemaRegistryError(404, f"{status_error(404).message}: the path is not valid UTF-8") from None


async def _parse_body(request: Request, content: bytes) -> dict[str, Any]:
    """The JSON object of a body; a large one is parsed in another thread. Raises: SchemaRegistryError."""
    if len(content) <= LARGE_BODY:
        return parse_object(request, content)
    return await asyncio.to_thread(parse_object, request, content)
