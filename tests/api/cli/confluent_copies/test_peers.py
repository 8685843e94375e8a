"""Copies from other schema registries, from overloaded ones, and from ones that change during the copy (CSR-1002).

Each is a registry behind a gateway, which answers some requests itself, or removes what the other product lacks.
"""

from __future__ import annotations

import json
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from threading import Event, Thread
from typing import Any, Final, NamedTuple

import httpx
import pytest

from annals.api.cli.outcome import ExitCode
from annals.domain.confluent.subjects import Subject
from annals.projections.confluent_copy import rest_api
from annals.projections.confluent_copy.export_run import WRITERS
from annals.projections.confluent_copy.import_run import ImportRun
from annals.projections.confluent_copy.report import CopyReport
from annals.projections.confluent_copy.rest_api import HttpApi
from annals.projections.confluent_copy.rest_reader import READERS, RestReader
from annals.projections.confluent_copy.subject_copy import SubjectCopy
from annals.projections.outgoing.destination_guard import DestinationGuard
from tests.api.cli.confluent_copies.test_copies import report, sqlite
from tests.support.confluent import serving_confluent
from tests.support.console import Annals
from tests.support.forks import Fork
from tests.support.gateways import Answer, Change, GatewayRequest, GatewayResponse, Ignored, gateway
from tests.support.polling import until
from tests.support.schema_sets import contents, done, fill, register
from tests.support.serving import environment

NOT_FOUND: Final = GatewayResponse(404, {"error_code": 404, "message": "HTTP 404 Not Found"})
NOT_ALLOWED: Final = GatewayResponse(405, {"error_code": 405, "message": "HTTP 405 Method Not Allowed"})


@pytest.fixture(autouse=True)
def local_addresses(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANNALS_SINKS_ALLOW", "127.0.0.1")


class Peer(NamedTuple):
    """How another product differs. expects: reduces copies to the data that the product can return."""

    answer: Answer = lambda request: None
    ignored: Ignored = lambda request: ()
    change: Change = lambda request, body: body
    expects: Callable[[dict[Subject, SubjectCopy]], dict[Subject, SubjectCopy]] = lambda copies: copies


def without(*paths: str, response: GatewayResponse = NOT_FOUND) -> Answer:
    """A registry that lacks some paths."""
    return lambda request: response if request.path.startswith(paths) else None


def without_members(request: GatewayRequest, body: Any) -> Any:
    """Removes the members that schemas of an older release lack."""
    if isinstance(body, list):
        return [without_members(request, one) for one in body]
    if isinstance(body, dict):
        return {name: value for name, value in body.items() if name not in ("deleted", "guid", "ts")}
    return body


def in_order_of_numbers(request: GatewayRequest, body: Any) -> Any:
    """Sorts the list of all schemas so that the versions of a subject are not next to each other."""
    if request.path == "/schemas" and isinstance(body, list):
        return sorted(body, key=lambda one: (one["version"], one["subject"]))
    return body


PEERS = {
    "no list of schemas": Peer(without("/schemas")),
    "another method at the list": Peer(without("/schemas", response=NOT_ALLOWED)),
    "a list that is not implemented": Peer(without("/schemas", response=GatewayResponse(501, None))),
    "a list that is refused": Peer(
        without("/schemas", response=GatewayResponse(403, {"error_code": 40301, "message": "no"}))
    ),
    "a list of something else": Peer(without("/schemas", response=GatewayResponse(200, {"schemas": []}))),
    "no pages": Peer(ignored=lambda request: ("offset", "limit")),
    "an older release": Peer(change=without_members),
    "an older release, whose list has no deleted ones": Peer(
        ignored=lambda request: ("deleted",) if request.path == "/schemas" else (), change=without_members
    ),
    "a list in another order": Peer(change=in_order_of_numbers),
    "no modes": Peer(
        without("/mode", response=NOT_ALLOWED),
        expects=lambda copies: {subject: replace(copy, mode=None) for subject, copy in copies.items()},
    ),
    "no contexts": Peer(
        without("/contexts"),
        expects=lambda copies: {subject: copy for subject, copy in copies.items() if subject.name},
    ),
}


def like_karapace(request: GatewayRequest) -> GatewayResponse | None:
    """A registry without contexts that returns the global mode as the mode of each subject."""
    is_of_subject = request.path.startswith("/mode/") and request.path != "/mode/Sub1"
    return GatewayResponse(200, {"mode": "READWRITE"}) if is_of_subject else without("/contexts")(request)


PEERS["modes of subjects that have none"] = PEERS["no contexts"]._replace(answer=like_karapace)

#: Answers of Apicurio. The configs of subjects that have none are answered, too.
APICURIO: Final = {
    "/contexts": GatewayResponse(200, [":.:"]),
    "/schemas": GatewayResponse(404, None),
    **{f"/config/sub{number}": GatewayResponse(200, {"compatibilityLevel": "NONE"}) for number in (6, 12, 18, 24)},
}


def like_apicurio(request: GatewayRequest) -> GatewayResponse | None:
    """Apicurio without modes: it answers requests about modes of subjects without a body."""
    return GatewayResponse(204, None) if request.path.startswith("/mode/") else APICURIO.get(request.path)


def like_later_apicurio(request: GatewayRequest) -> GatewayResponse | None:
    """Apicurio from 3.2 on, which has modes."""
    return like_karapace(request) if request.path.startswith("/mode/") else APICURIO.get(request.path)


PEERS["Apicurio"] = PEERS["no contexts"]._replace(
    answer=like_apicurio,
    expects=lambda copies: PEERS["no contexts"].expects(PEERS["no modes"].expects(copies)),
)
PEERS["a later Apicurio"] = PEERS["no contexts"]._replace(answer=like_later_apicurio)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a registry with schemas of all kinds, which tests only read."""
    place = tmp_path_factory.mktemp("filled")
    with serving_confluent(f"sqlite:///{place / 'first'}.db", place) as url:
        fill(url, 30)
        yield url


@pytest.mark.parametrize("make", PEERS)
def test_a_peer_of_another_make(annals: Annals, folder: Path, filled: str, make: str) -> None:
    peer, database = PEERS[make], sqlite(folder, "second")
    with gateway(filled, peer.answer, peer.ignored, peer.change) as source:
        copied = annals("import", "--from-confluent", source.url, "--database", database)
        assert copied.code == 0, copied.err
    with serving_confluent(database, folder / "second") as second:
        assert _non_empty(peer.expects(contents(second))) == _non_empty(peer.expects(contents(filled)))


def _non_empty(copies: dict[Subject, SubjectCopy]) -> dict[Subject, SubjectCopy]:
    """The copies without empty ones."""
    return {subject: copy for subject, copy in copies.items() if not copy.is_empty}


def test_requests_to_a_peer(annals: Annals, folder: Path, filled: str) -> None:
    """All versions are read with one list, and each subject takes one request for its config and one for its mode."""
    with gateway(filled) as source:
        assert annals("import", "--from-confluent", source.url, "--database", sqlite(folder, "second")).code == 0
    paths = [request.path for request in source.requests]
    subjects = sum(1 for subject in contents(filled))
    # Only whether paths with slashes arrive as they are is tried, by each thread at most once.
    tried = [path for path in paths if path.startswith("/subjects/")]
    assert len(tried) <= READERS
    assert len(paths) - len(tried) <= 2 * subjects + 8


_DECODED: Final = ("/subjects/topic/", "/config/topic/", "/mode/topic/")


@pytest.mark.parametrize(
    "answer",
    [
        without(*_DECODED),
        without(
            *_DECODED, response=GatewayResponse(200, {"subject": "b", "version": 1, "id": 1, "schema": '"string"'})
        ),
        without(*_DECODED, "/schemas"),
    ],
    ids=["nothing", "another subject", "nothing, and no list of schemas"],
)
def test_a_proxy_that_decodes_paths(annals: Annals, folder: Path, filled: str, answer: Answer) -> None:
    # CSR-1002: behind it, a subject with a slash seems to have nothing, or what another one has
    with gateway(filled, answer) as source:
        copied = annals(
            "import", "--from-confluent", source.url, "--database", sqlite(folder, "second"), "--report", "report"
        )
    failed = [line for line in report(folder / "report") if line.get("outcome") == "failed"]
    assert copied.code == 1, copied.err
    assert {line["subject"].partition("/")[0] for line in failed} == {"topic"}
    assert all("a proxy before the registry decodes paths" in line["reason"] for line in failed), failed


def test_a_subject_with_a_slash_that_is_deleted_meanwhile(annals: Annals, folder: Path, filled: str) -> None:
    # CSR-1002: its paths lead to nothing, but no proxy is the reason
    lists = iter([["topic/2-value"]])

    def answer(request: GatewayRequest) -> GatewayResponse | None:
        if request.path == "/subjects":
            return GatewayResponse(200, next(lists, []))
        return without(*_DECODED, "/schemas")(request)

    with gateway(filled, answer) as source:
        copied = annals("import", "--from-confluent", source.url, "--database", sqlite(folder, "second"))
    assert (copied.code, copied.err) == (0, "")


def test_subjects_share_requests_to_a_server(annals: Annals, folder: Path, filled: str) -> None:
    """Independent subjects share a request; subjects that refer to them follow in a second one."""
    with serving_confluent(sqlite(folder, "second"), folder / "second") as second:
        root = (folder / "second" / "serve.log").read_text().split("Annals serves ")[1].split()[0]
        with gateway(root) as target:
            assert annals("import", "--from-confluent", filled, "--server", target.url).code == 0
        assert len([request for request in target.requests if request.method == "POST"]) == 2
        assert contents(second) == contents(filled)


def test_a_subject_that_is_too_large_is_refused_alone(annals: Annals, folder: Path) -> None:
    large = {"type": "record", "name": "Large", "doc": "x" * 30_000, "fields": []}
    with (
        serving_confluent(sqlite(folder, "first"), folder / "first") as first,
        serving_confluent(sqlite(folder, "second"), folder / "second", ANNALS_MAX_BODY="20000") as second,
        httpx.Client(base_url=first) as client,
    ):
        for number in range(5):
            register(client, f"s{number}", {"schema": f'{{"type": "record", "name": "R{number}", "fields": []}}'})
        register(client, "large", {"schema": json.dumps(large)})
        root = (folder / "second" / "serve.log").read_text().split("Annals serves ")[1].split()[0]
        copied = annals("import", "--from-confluent", first, "--server", root, "--report", "report.jsonl")
        assert copied.code == 1
        refused = [line for line in report(folder / "report.jsonl") if line.get("outcome") == "failed"]
        assert [line["subject"] for line in refused] == ["large"]
        assert {subject.name for subject in contents(second) if subject.name} == {f"s{number}" for number in range(5)}


# --- peers that are busy, or do not answer ---------------------------------------------------------------------------


def test_a_busy_peer_is_asked_again_after_the_time_that_it_names(annals: Annals, folder: Path, filled: str) -> None:
    seen: dict[str, list[float]] = {}

    def busy(request: GatewayRequest) -> GatewayResponse | None:
        times = seen.setdefault(request.path, [])
        times.append(time.monotonic())
        if request.path == "/contexts" and len(times) == 1:
            return GatewayResponse(429, None, {"retry-after": "2"})
        if request.path == "/subjects" and len(times) == 1:
            then = datetime.now(UTC) + timedelta(seconds=3)
            return GatewayResponse(503, None, {"retry-after": format_datetime(then, usegmt=True)})
        if request.path.startswith("/config/") and len(times) == 1:
            return GatewayResponse(500, {"error_code": 50001, "message": "Error in the backend data store"})
        return None

    database = sqlite(folder, "second")
    with gateway(filled, busy) as source:
        copied = annals("import", "--from-confluent", source.url, "--database", database)
        assert copied.code == 0, copied.err
    assert seen["/contexts"][1] - seen["/contexts"][0] >= 2
    assert seen["/subjects"][1] - seen["/subjects"][0] >= 2  # the date has no fractions
    with serving_confluent(database, folder / "second") as second:
        assert contents(second) == contents(filled)


@pytest.mark.parametrize(
    "text", ["soon", "²", "Fri, 31 Feb 2026 25:61:00 GMT", "1 Jan 99999999999999999999 0:0 GMT", ","]
)
def test_times_that_are_none_are_passed_over(text: str) -> None:
    """CSR-1002: an answer with such a `Retry-After` is an answer that names no time."""
    told = iter([GatewayResponse(503, None, {"retry-after": text.encode().decode("latin-1")})])
    waits = list[float]()
    with (
        gateway("http://127.0.0.1:9", lambda request: next(told, GatewayResponse(200, ["a"]))) as peer,
        closing(HttpApi(peer.url, DestinationGuard("127.0.0.1"), wait=waits.append)) as api,
    ):
        assert api.send("GET", "/subjects").body == ["a"]
    assert waits == [0.0, rest_api.RETRY_SECONDS[0]]


ANSWERS: Final = [
    (GatewayResponse(503, {"error_code": 503, "message": "starting"}), "GET /contexts answers 503: starting"),
    (NOT_FOUND, "GET /subjects answers 404"),
    (GatewayResponse(401, {"error_code": 401, "message": "who is it?"}), "GET /contexts answers 401: who is it?"),
    (GatewayResponse(404, {"error_code": 404, "message": "Not Found."}), "GET /subjects answers 404: Not Found.\n"),
    (GatewayResponse(200, "<html>"), "its answer is not that of a schema registry"),
    (GatewayResponse(200, [1, 2]), "GET /contexts: its answer is not that of a schema registry"),
]


@pytest.mark.parametrize(("told", "message"), ANSWERS, ids=range(len(ANSWERS)))
def test_what_is_no_registry(
    annals: Annals, folder: Path, monkeypatch: pytest.MonkeyPatch, filled: str, told: GatewayResponse, message: str
) -> None:
    monkeypatch.setattr(rest_api, "RETRY_SECONDS", (0.01,))
    with gateway(filled, lambda request: told) as source:
        ended = annals("import", "--from-confluent", source.url, "--database", sqlite(folder, "second"))
    assert (ended.code, message in ended.err) == (3, True), ended


#: What a server answers that is asked to record one subject without versions.
WRONG_OUTCOMES: Final = {
    "a text": "<html>",
    "an object without subjects": {},
    "fewer subjects": {"subjects": []},
    "no object": {"subjects": [5]},
    "no versions": {"subjects": [{}]},
    "a list of versions": {"subjects": [{"versions": ["created"]}]},
    "a number that is none": {"subjects": [{"versions": {"x": "created"}}]},
    "an unknown outcome": {"subjects": [{"versions": {"1": "painted"}}]},
    "an outcome that is none": {"subjects": [{"versions": {"1": []}}]},
    "an unknown outcome of a setting": {"subjects": [{"versions": {}, "config": {}}]},
    "a code that is none": {"subjects": [{"error_code": "x", "message": "no"}]},
    "an error without a message": {"subjects": [{"error_code": 422}]},
}


@pytest.mark.parametrize("wrong", WRONG_OUTCOMES.values(), ids=WRONG_OUTCOMES)
def test_what_is_no_server(annals: Annals, folder: Path, wrong: Any) -> None:
    """CSR-1001: a copy through a server ends if the answers are not those of the route that records subjects."""
    key, value = {"keytype": "CONFIG", "subject": "a", "magic": 0}, {"compatibilityLevel": "FULL"}
    (folder / "dump").write_text(f"{json.dumps(key)}\t{json.dumps(value)}\n")
    answers = {"/compat/confluent/-/import": wrong}
    with gateway("http://127.0.0.1:9", lambda request: GatewayResponse(200, answers.get(request.path, []))) as target:
        ended = annals("import", "--from-schemas-dump", "dump", "--server", target.url)
    assert (ended.code, ended.err.count("\n")) == (ExitCode.STORE, 1), ended.err
    assert "POST /-/import: its answer is not that of a schema registry" in ended.err


#: What a version is at the source, each of which no reader may take for a defect of its own.
WRONG_VERSIONS: Final = {
    "a list": lambda body: [1, 2],
    "a version without an end": lambda body: {**body, "version": 1e400},
    "an id without an end": lambda body: {**body, "id": 1e400},
    "references that are none": lambda body: {**body, "references": [1]},
}


@pytest.mark.parametrize("wrong", WRONG_VERSIONS.values(), ids=WRONG_VERSIONS)
@pytest.mark.parametrize("is_listed", [True, False])
def test_a_version_that_is_none_is_reported(
    annals: Annals, folder: Path, filled: str, wrong: Callable[[Any], Any], is_listed: bool
) -> None:
    def change(request: GatewayRequest, body: Any) -> Any:
        if request.path == "/schemas":
            return [wrong(one) for one in body] if is_listed else {}
        return wrong(body) if "/versions/" in request.path else body

    with gateway(filled, change=change) as source:
        ended = annals("import", "--from-confluent", source.url, "--database", sqlite(folder, "second"))
    assert (ended.code, ended.err.count("\n")) == (1, 1) and "a part was not copied" in ended.err, ended.err


def test_an_answer_that_is_nested_too_deeply(annals: Annals, folder: Path) -> None:
    with closing(_server(b"HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n" + b"[" * 100_000)) as source:
        ended = annals("import", "--from-confluent", _url(source), "--database", sqlite(folder, "second"))
        compared = annals("log", "hash", "--against", _url(source), "--database", sqlite(folder, "second"))
    assert ended.code == 3 and "its answer is not that of a schema registry" in ended.err, ended.err
    assert compared.code == 3 and "this is not the answer of a registry with hashes" in compared.err, compared.err


def _server(answer: bytes) -> socket.socket:
    """A server that gives each request this answer."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with suppress(OSError), ExitStack() as connections:  # until it is closed
            while True:
                connection = connections.enter_context(listening.accept()[0])
                connection.recv(65536)
                connection.sendall(answer)
                connection.shutdown(socket.SHUT_WR)

    Thread(target=serve, daemon=True).start()
    return listening


def _url(server: socket.socket) -> str:
    return f"http://127.0.0.1:{server.getsockname()[1]}"


#: Options of a copy, a signal, and the exit code.
ENDS: Final = [
    (("--follow",), signal.SIGINT, ExitCode.DONE),
    (("--follow",), signal.SIGTERM, ExitCode.DONE),
    ((), signal.SIGINT, ExitCode.INTERRUPTED),
    ((), signal.SIGTERM, -signal.SIGTERM),
]


@pytest.mark.parametrize(("options", "number", "code"), ENDS)
def test_a_copy_from_a_source_without_answers_ends_by_a_signal(
    folder: Path, options: tuple[str, ...], number: int, code: int
) -> None:
    """CSR-1011: one signal ends it, although many requests have no answer."""
    answers, ended = {"/contexts": [], "/subjects": ["a", "b"], "/schemas": []}, Event()

    def answer(request: GatewayRequest) -> GatewayResponse:
        if request.path not in answers:
            ended.wait(60)
        return GatewayResponse(200, answers.get(request.path))

    with (
        gateway("http://127.0.0.1:9", answer) as source,
        _copying(folder, "import", "--from-confluent", source.url, *options) as process,
    ):
        until(lambda: any(request.path not in answers for request in source.requests))
        time.sleep(0.5)  # until the other requests wait, too
        process.send_signal(number)
        assert process.wait(15) == code, (folder / "err").read_text()
        ended.set()


@pytest.mark.parametrize("seconds", [1, 60])
def test_a_copy_to_another_registry_ends_by_a_signal(folder: Path, filled: str, seconds: float) -> None:
    """CSR-1008: modes are put back, also if a request to register a version is not answered."""
    ended = Event()

    def delay(request: GatewayRequest, body: Any) -> Any:
        if request.method == "POST" and request.path.endswith("/versions"):
            ended.wait(seconds)
        return body

    with _copying(folder, "import", "--from-confluent", filled) as process:
        assert process.wait(60) == 0
    with (
        serving_confluent(sqlite(folder, "third"), folder / "third") as third,
        gateway(third, change=delay) as target,
        _copying(folder, "export", "--to-confluent", target.url) as process,
    ):
        until(lambda: any(request.method == "POST" for request in target.requests))
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == ExitCode.INTERRUPTED, (folder / "err").read_text()
        ended.set()
        changed = [request.path for request in target.requests if request.method == "PUT"]
        begun = [path for path in changed if path.startswith("/mode/")]
        assert 0 < len(begun) <= WRITERS
        assert [httpx.get(third + path).status_code for path in begun] == [404] * len(begun)
    assert (folder / "err").read_text().startswith("annals: stopped by a signal; what is copied stays")


def test_a_copy_that_follows_a_source_that_is_away_ends_by_a_signal(folder: Path) -> None:
    """CSR-1011: the first signal ends it with 0, also in the first round, and while it waits to ask once more."""
    busy = GatewayResponse(503, None, {"retry-after": "60"})
    with gateway("http://127.0.0.1:9", lambda request: busy) as source, _following(folder, source.url) as process:
        until(lambda: source.requests)
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(15) == ExitCode.DONE, (folder / "err").read_text()


def test_what_was_refused_counts_although_the_source_is_away_at_the_end(
    annals: Annals, folder: Path, filled: str
) -> None:
    is_away = False

    def answer(request: GatewayRequest) -> GatewayResponse | None:
        if is_away:
            return NOT_FOUND
        return GatewayResponse(401, None) if request.path == "/mode/Sub1" else None

    options = ("--report", "report.jsonl")
    with gateway(filled, answer) as source, _following(folder, source.url, *options) as process:
        until(lambda: "failed" in (folder / "out").read_text())
        is_away = True
        until(lambda: "answers 404" in (folder / "err").read_text())
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == ExitCode.REFUSED
    assert "report.jsonl says which one and why" in (folder / "err").read_text()
    assert report(folder / "report.jsonl")[-1]["counts"]["failed"] == 1


def _following(folder: Path, url: str, *options: str) -> AbstractContextManager[Fork]:
    """A process that copies from a URL again and again."""
    return _copying(folder, "import", "--from-confluent", url, "--follow", "--interval", "0.1", *options)


@contextmanager
def _copying(folder: Path, *arguments: str) -> Iterator[Fork]:
    """A process that copies into or from a store of its own."""
    for name in ("out", "err"):
        (folder / name).touch()
    settings = environment(ANNALS_SINKS_ALLOW="127.0.0.1")
    command = [*arguments, "--database", sqlite(folder, "second")]
    process = Fork(command, folder, settings, folder / "out", folder / "err")
    try:
        yield process
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait(30)


# --- credentials and certificates ------------------------------------------------------------------------------------

#: Options, the contents of `secret`, the settings, and what is said; each before a request is sent.
UNUSABLE: Final = [
    ("--secret-file secret", b"\xff\xfe", {}, "secret is not UTF-8 text."),
    ("--secret-file secret --user ann", b"\xff\xfe", {}, "secret is not UTF-8 text."),
    ("--secret-file secret", "pässwort".encode(), {}, "the token has characters that a header cannot have."),
    ("--secret-file secret", b"a\nb", {}, "the token has characters that a header cannot have."),
    ("--server http://127.0.0.1:1", b"", {"ANNALS_TOKEN": "tökén"}, "the token has characters that a header cannot"),
    ("--ca secret", b"no certificate", {}, "--ca: secret is not a PEM file with certificates: "),
]


@pytest.mark.parametrize(("options", "secret", "settings", "message"), UNUSABLE)
def test_credentials_and_certificates_that_are_none(
    annals: Annals,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: str,
    secret: bytes,
    settings: dict[str, str],
    message: str,
) -> None:
    # CSR-1009
    (folder / "secret").write_bytes(secret)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    verbs = [["import", "--from-confluent", "https://127.0.0.1:1"]]
    if "--server" not in options:
        assert annals("import", "--from-schemas-dump", "/dev/null", "--database", sqlite(folder, "own")).code == 0
        verbs.append(["export", "--database", sqlite(folder, "own"), "--to-confluent", "https://127.0.0.1:1"])
    for verb in verbs:
        ended = annals(*verb, *options.split())
        assert (ended.code, ended.err.count("\n")) == (ExitCode.USAGE, 1) and message in ended.err, ended.err


def test_a_subject_that_cannot_be_read_is_reported_and_stays(
    annals: Annals, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy does not delete a subject only because the source failed to return it (CSR-1011)."""
    monkeypatch.setattr(rest_api, "RETRY_SECONDS", (0.01,))
    fails = False

    def failing(request: GatewayRequest) -> GatewayResponse | None:
        return (
            GatewayResponse(500, {"error_code": 50001, "message": "damaged"})
            if fails and request.path == "/mode/b"
            else None
        )

    with (
        serving_confluent(sqlite(folder, "first"), folder / "first") as first,
        serving_confluent(sqlite(folder, "second"), folder / "second") as second,
        httpx.Client(base_url=first) as client,
        gateway(first, failing) as source,
        closing(HttpApi(source.url, DestinationGuard("127.0.0.1"))) as from_api,
        closing(HttpApi(second, DestinationGuard("127.0.0.1"))) as to_api,
    ):
        for name in ("a", "b"):
            register(client, name, {"schema": f'{{"type": "record", "name": "{name}", "fields": []}}'})
        for _ in range(2):
            found = CopyReport()
            ImportRun(RestReader(from_api), "here", to_api, found, deletes=True).run()
            fails = True
        assert found.counts["failed"] == 1 and not found.counts["deleted"]
        assert httpx.get(f"{second}/subjects").json() == ["a", "b"]


def test_a_list_that_becomes_shorter_while_it_is_read(
    annals: Annals, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deletion shifts the rest of the list, so that a subject can move from an unread page to one already read."""
    monkeypatch.setattr(rest_api, "PAGE", 4)
    with (
        serving_confluent(sqlite(folder, "first"), folder / "first") as first,
        serving_confluent(sqlite(folder, "second"), folder / "second") as second,
        httpx.Client(base_url=first) as client,
    ):
        names = [f"s{number:02}" for number in range(20)]
        for name in names:
            register(client, name, {"schema": f'{{"type": "record", "name": "{name}", "fields": []}}'})

        def shrinking(request: GatewayRequest) -> GatewayResponse | None:
            if request.path in ("/subjects", "/schemas") and request.query["offset"] not in ("0", "3") and names:
                for query in ("", "?permanent=true"):
                    done(client, "DELETE", f"/subjects/{names[0]}{query}")
                names.pop(0)
            return None

        with gateway(first, shrinking) as source:
            root = (folder / "second" / "serve.log").read_text().split("Annals serves ")[1].split()[0]
            copied = annals("import", "--from-confluent", source.url, "--server", root)
        assert copied.code == 0, copied.err
        found = httpx.get(f"{second}/subjects").json()
        assert len(names) < 18 and set(names) <= set(found)
