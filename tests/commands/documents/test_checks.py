"""Documents are checked before the write lock is taken, within limits; commands that lack results are retried."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from annals.commands.command_bus import CommandBus
from annals.commands.documents import check_server, document_checker
from annals.commands.documents.check_server import CheckServer, DocumentsLost
from annals.commands.documents.document_checker import CheckLimits, DocumentChecker
from annals.commands.store.log import Store
from annals.commands.store.write_transaction import Recorded
from annals.commands.verify.verify_log import verify_log
from annals.domain.decisions.changes.documents import digest
from annals.domain.decisions.checks.document_checks import (
    OUT_OF_MEMORY,
    TIMED_OUT,
    AncestorsCheck,
    CheckResult,
    CompatibilityCheck,
    DocumentCheck,
    FormatCheck,
    comparison_count,
    find_incompatible,
    parse_document,
    run_check,
)
from annals.domain.decisions.commands import CreateRegistry, WriteMethod, WriteTree
from annals.domain.decisions.rules import version_checks
from annals.domain.errors.problems import Problem, ServerBusy
from annals.domain.model.builtin import default_source
from tests.commands.documents.test_hostile import bombs

SCHEMA = "/schemagroups/g1/schemas/s1"


def record(*fields: str, optional: bool = False) -> dict[str, Any]:
    """An Avro schema."""
    default = {"default": ""} if optional else {}
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": "string", **default} for name in fields]}


def avro(*fields: str, optional: bool = False, **attributes: Any) -> dict[str, Any]:
    """A Version with that schema."""
    return {"format": "Avro/1.11", "schema": record(*fields, optional=optional), **attributes}


class Counted(DocumentChecker):
    """A checker that records the checks it is requested to run, whether they need a process or not."""

    def __init__(self) -> None:
        super().__init__()
        self.requested: list[DocumentCheck] = []

    def check(self, document_checks: Any, content: Any, report: Any = None) -> dict[DocumentCheck, CheckResult]:
        requested = list(document_checks)
        self.requested += requested
        return super().check(requested, content, report)


@pytest.fixture
def checker() -> Counted:
    return Counted()


@pytest.fixture
def command_bus(store: Store, checker: DocumentChecker) -> Iterator[CommandBus]:
    with closing(CommandBus(store, [], checker=checker)) as command_bus:
        command_bus.submit(CreateRegistry("reg", default_source())).result()
        yield command_bus


def put(command_bus: CommandBus, xid: str, tree: dict[str, Any], method: WriteMethod = WriteMethod.PUT) -> Recorded:
    return command_bus.submit(WriteTree(xid, tree, method)).result(60)


def refused(command_bus: CommandBus, xid: str, tree: dict[str, Any], method: WriteMethod = WriteMethod.PUT) -> Problem:
    with pytest.raises(Problem) as problem:
        put(command_bus, xid, tree, method)
    return problem.value


def test_a_document_that_is_none_of_its_format_is_refused(store: Store, command_bus: CommandBus) -> None:
    # SC-10, V-14: whatever strictvalidation says; the response has the location and the fragment there
    put(command_bus, SCHEMA, avro("a"))
    before = store.log_end()
    problem = refused(command_bus, SCHEMA, avro("a", "a"))
    assert problem.name == "format_violation"
    assert problem.extensions["violations"][0].keys() == {"versionid", "text", "pointer", "fragment"}  # type: ignore[index]
    assert store.log_end() == before


def test_a_format_that_is_found_out_late_is_checked_as_well(store: Store, command_bus: CommandBus) -> None:
    # SC-01, SC-35: only the decision finds the format, in the Group's constraints; the whole tree is decided twice
    constraints = {"schemas.format": {"default": "Avro/1.11"}}
    tree = {"constraints": constraints, "schemas": {f"s{n}": {"schema": record("a", f"b{n}")} for n in range(3)}}
    recorded = put(command_bus, "/schemagroups/g1", tree)
    versions = {event.xid: event for _, event in recorded.events if event.type == "schemagroups.schemas.versions"}
    assert {event.attributes["formatvalidated"] for event in versions.values()} == {True}
    assert len(versions) == 3 and all(event.private["document"] for event in versions.values())
    wrong = {"schemas": {"s4": {"schema": record("a")}, "s5": {"schema": {"type": "nothing"}}}}
    assert refused(command_bus, "/schemagroups/g1", wrong, WriteMethod.PATCH).name == "format_violation"
    assert list(verify_log(store)) == []


def test_an_incompatibility_has_a_position_and_a_reason(command_bus: CommandBus) -> None:
    # SC-30, SC-36: the response has the rule, both locations and both fragments
    put(command_bus, SCHEMA, avro("a", versionid="v1", meta={"compatibility": "backward"}))
    problem = refused(command_bus, f"{SCHEMA}/versions/v2", avro("a", "b"))
    assert problem.name == "compatibility_violation"
    assert problem.extensions["incompatibilities"] == [
        {
            "direction": "backward",
            "rule": "reader-field-missing-default",
            "text": problem.extensions["incompatibilities"][0]["text"],  # type: ignore[index]
            "version": {"versionid": "v2", "pointer": "/fields/1", "fragment": '{"name":"b","type":"string"}'},
            "ancestor": problem.extensions["incompatibilities"][0]["ancestor"],  # type: ignore[index]
        }
    ]
    assert '"b"' in str(problem.detail) and 'Version "v2"' in str(problem.detail)


def test_all_that_a_rule_refuses_are_named(store: Store, command_bus: CommandBus) -> None:
    # SC-30: each offending Version, with the one that it is compared with; nothing is stored
    for id, fields in (("v1", "a"), ("v2", "ab"), ("v3", "abc")):
        put(command_bus, f"{SCHEMA}/versions/{id}", avro(*fields))
    before = store.log_end()
    problem = refused(command_bus, f"{SCHEMA}/meta", {"compatibility": "full_transitive"}, WriteMethod.PATCH)
    found: Any = problem.extensions["incompatibilities"]
    offending = {(one["version"]["versionid"], one["ancestor"]["versionid"], one["direction"]) for one in found}
    assert offending == {("v2", "v1", "backward"), ("v3", "v2", "backward"), ("v3", "v1", "backward")}
    assert all(f'"{id}"' in str(problem.detail) for id in ("v1", "v2", "v3"))
    assert store.log_end() == before
    assert [
        event.xid
        for _, event in put(command_bus, f"{SCHEMA}/meta", {"compatibility": "forward"}, WriteMethod.PATCH).events
    ]


def test_a_new_version_asks_as_much_as_its_line_is_long(command_bus: CommandBus, checker: Counted) -> None:
    # ENT-112: transitive rules compare a new Version once with each of its ancestors in each direction, and no others
    put(command_bus, SCHEMA, avro("a0", optional=True, versionid="v0", meta={"compatibility": "full_transitive"}))
    for number in range(1, 12):
        checker.requested.clear()
        fields = [f"a{each}" for each in range(number + 1)]
        put(command_bus, f"{SCHEMA}/versions/v{number}", avro(*fields, optional=True))
        assert sum(isinstance(document_check, CompatibilityCheck) for document_check in checker.requested) == 2 * number
    checker.requested.clear()
    put(command_bus, f"{SCHEMA}/versions/v5", {"description": "no other document"}, WriteMethod.PATCH)
    assert checker.requested == []


def test_a_long_line_asks_for_few_checks(
    command_bus: CommandBus, checker: Counted, monkeypatch: pytest.MonkeyPatch
) -> None:
    # ENT-112, ENT-113: a new rule compares all pairs, several in one check, because the decision holds the write lock
    monkeypatch.setattr(version_checks, "COMPARED_TOGETHER", 4)
    fields = [f"a{number}" for number in range(20)]
    versions = {f"v{n:02}": avro(*fields[: n + 1], optional=True) for n in range(20)}
    put(command_bus, SCHEMA, {"versions": versions})
    checker.requested.clear()
    put(command_bus, f"{SCHEMA}/meta", {"compatibility": "full_transitive"}, WriteMethod.PATCH)
    comparisons = [check for check in checker.requested if not isinstance(check, FormatCheck)]
    assert sum(map(comparison_count, comparisons)) == 2 * 190
    assert len(comparisons) <= 20 * 5 + 2 * 10
    problem = refused(command_bus, f"{SCHEMA}/versions/v20", avro("other", ancestorid="v19"))
    found: Any = problem.extensions["incompatibilities"]
    nearest = {"v19", "v15", "v11", "v07", "v03"}  # of each check
    assert {(each["version"]["versionid"], each["ancestor"]["versionid"]) for each in found} == {
        ("v20", id) for id in nearest
    }


@pytest.mark.parametrize("formats_first", [False, True])
def test_a_lineage_in_processes_has_the_result_of_the_rule(formats_first: bool) -> None:
    # ENT-112: whether documents of it were checked earlier or not; an invalid one hides no other
    texts = [b"q", *(json.dumps(record("a", *fields, optional=True)).encode() for fields in ("", "b", "c")), b'"int"']
    contents = {digest(text) or "": text for text in texts}
    invalid, *valid, other = [FormatCheck("avro/1.11", sha256) for sha256 in contents]

    def parse(document: FormatCheck) -> Any:
        return parse_document(document, contents[document.sha256 or ""])

    for ancestors in ((invalid, *valid[1:], other), (*valid, invalid), (other, invalid), valid[1:]):
        check, checker = AncestorsCheck(valid[0], tuple(ancestors), ("reader", "writer")), DocumentChecker()
        if formats_first:
            checker.check([valid[0], *ancestors], contents.__getitem__)
        results = checker.check([check] if formats_first else [valid[0], *ancestors, check], contents.__getitem__)
        found, expected = (find_incompatible(check, each) for each in (results[check], run_check(check, parse)))
        assert (found and found[:2]) == (expected and expected[:2])


@pytest.mark.parametrize("formats_first", [False, True])
def test_a_lineage_without_all_results_has_none(formats_first: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    # SC-30: when the time of a request ends, nobody knows which ancestor is not compatible
    monkeypatch.setattr(document_checker, "CHECKS_PER_TIMEOUT", 1_000_000)
    contents = {digest(text) or "": text for text in (json.dumps(record(name)).encode() for name in "abc")}
    document, *ancestors = [FormatCheck("avro/1.11", sha256) for sha256 in contents]
    check, checker = AncestorsCheck(document, tuple(ancestors), ("reader",)), DocumentChecker()
    if formats_first:
        checker.check([document, *ancestors], contents.__getitem__)
    monkeypatch.setattr(checker, "_limits", CheckLimits(max_losses=0))
    assert checker.check([check], contents.__getitem__) == {check: (TIMED_OUT,)}


def test_a_process_that_has_lost_documents_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    # a lack of memory is no fault of the documents that are checked after it, so another process checks them
    texts = [json.dumps(record(name)).encode() for name in "abc"]
    contents = {digest(text) or "": text for text in texts}
    server, checks = CheckServer(1 << 30), [FormatCheck("avro/1.11", sha256) for sha256 in contents]
    assert server.missing_documents(checks[:1]) == list(contents)[:1]
    assert server.result_of(checks[0], contents) == ()
    sent = {sha256: contents[sha256] for sha256 in server.missing_documents(checks)}
    monkeypatch.setattr(check_server, "run_check", lambda *_: (OUT_OF_MEMORY,))
    server.result_of(checks[1], sent)
    monkeypatch.undo()
    with pytest.raises(DocumentsLost):
        server.result_of(checks[0], sent)


def test_documents_of_a_request_stay_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    # the server has not asked for a document that it has, so it keeps it while it parses others
    monkeypatch.setattr(check_server, "CACHED_BYTES", 500)
    contents = {
        digest(content) or "": content
        for content in (json.dumps(record("a" * 90, str_)).encode() for str_ in "bcdefgh")
    }
    server, (first, *others) = CheckServer(1 << 30), [FormatCheck("avro/1.11", sha256) for sha256 in contents]
    for request in ([first], [*others, first], [first, *others], others):
        missing = server.missing_documents(request)
        sent = {sha256: contents[sha256] for sha256 in missing}
        assert [server.result_of(check, sent) for check in request] == [()] * len(request)


def test_the_time_limit_is_for_each_comparison() -> None:
    # a check that compares many ancestors may take longer than one comparison is allowed to
    def content(number: int) -> bytes:
        branches = [{"properties": {f"p{n}": {"minimum": n + number}}} for n in range(80)]
        return json.dumps({"allOf": branches}).encode()

    documents = {digest(content(number)) or "": content(number) for number in range(60)}
    newest, *ancestors = (FormatCheck("jsonschema/draft-07", sha256) for sha256 in documents)
    check = AncestorsCheck(newest, tuple(ancestors), ("reader",))
    checker = DocumentChecker(CheckLimits(seconds=1))
    assert checker.check([check], documents.__getitem__) == {check: ()}


def test_a_slow_check_blocks_no_other_command(store: Store) -> None:
    # an untrusted document is checked with a time limit in a separate process, while other commands are written
    [bomb] = bombs(1).values()
    with closing(CommandBus(store, [], checker=DocumentChecker(CheckLimits(seconds=5)))) as command_bus:
        command_bus.submit(CreateRegistry("reg", default_source())).result()
        put(command_bus, "/schemagroups/g1", {})
        slow = command_bus.submit(WriteTree(SCHEMA, {"format": "XSD/1.1", "schema": bomb.decode()}, WriteMethod.PUT))
        put(command_bus, "/schemagroups/g2", {})
        assert not slow.done()
        with pytest.raises(Problem) as problem:
            slow.result(60)
    assert problem.value.name == "format_violation"
    assert "longer than the limit for one document" in str(problem.value.detail)


def test_a_check_may_take_so_much_memory_only() -> None:
    # parsed, the document takes some 250 megabytes
    fields = [{"name": f"f{number}", "type": []} for number in range(220_000)]
    document = json.dumps({"type": "record", "name": "R", "fields": fields}, separators=(",", ":")).encode()
    document_check = FormatCheck("avro/1.11", digest(document))
    checker = DocumentChecker(CheckLimits(seconds=60, memory=190 << 20))
    answers = checker.check([document_check], lambda sha256: document)
    assert "memory" in answers[document_check][0].text


def test_one_bad_document_fails_only_its_own_command() -> None:
    # documents that are checked together with one that ends the process get their results all the same
    heavy = json.dumps(record(*(f"f{number}" for number in range(200_000)))).encode()
    light = [json.dumps(record(f"f{number}")).encode() for number in range(5)]
    documents = {digest(content): content for content in (heavy, *light)}
    document_checks = [FormatCheck("avro/1.11", sha256) for sha256 in documents]
    answers = DocumentChecker(CheckLimits(seconds=0.2)).check(document_checks, lambda sha256: documents[sha256])
    assert [bool(answers[document_check]) for document_check in document_checks] == [
        True,
        False,
        False,
        False,
        False,
        False,
    ]


def test_results_are_cached_unless_a_limit_was_exceeded(monkeypatch: pytest.MonkeyPatch) -> None:
    # a check that exceeds a limit is refused, and runs again at the next request
    heavy = json.dumps(record(*(f"f{number}" for number in range(200_000)))).encode()
    documents = {digest(content) or "": content for content in (b"type Query { cached: Int }", heavy)}
    fast, slow = map(FormatCheck, ("graphql/october2021", "avro/1.11"), documents)
    process_pool, uses = document_checker._process_pool, list[int]()

    def counted_pool(workers: int, memory: int) -> Any:
        uses.append(workers)  # once for each check that needs a process
        return process_pool(workers, memory)

    monkeypatch.setattr(document_checker, "_process_pool", counted_pool)
    checker, limited = DocumentChecker(), DocumentChecker(CheckLimits(seconds=0.2))
    for _ in range(2):
        assert checker.check([fast], documents.__getitem__) == {fast: ()}
        assert len(uses) == 1
    for number in range(2):
        [refusal] = limited.check([slow], documents.__getitem__)[slow]
        assert "longer than the limit for one document" in refusal.text
        assert len(uses) == 2 + number


def test_a_closed_checker_leaves_the_processes_to_others() -> None:
    # registries of one program share processes: a stopped checker still has its cached results, the other runs checks
    documents = {digest(content) or "": content for content in (b"type Query { a: Int }", b"type Query { b: Int }")}
    known, fresh = (FormatCheck("graphql/october2021", sha256) for sha256 in documents)
    stopped, other = DocumentChecker(), DocumentChecker()
    assert stopped.check([known], documents.__getitem__) == {known: ()}
    stopped.stop()
    assert stopped.check([known], documents.__getitem__) == {known: ()}
    with pytest.raises(ServerBusy):
        stopped.check([known, fresh], documents.__getitem__)
    assert other.check([known, fresh], documents.__getitem__) == {known: (), fresh: ()}
