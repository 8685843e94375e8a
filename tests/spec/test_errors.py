"""The error types equal the table of the specification, and every type that a request can cause has a row.

Rules ERR-1, ERR-2, ERR-7, ERR-10.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from annals.domain.errors import problems
from annals.domain.errors.problems import PROBLEM_TYPES, Problem
from tests.spec.test_http import ROWS

#: Name, status, subject and arguments; `-` is none. A subject in angle brackets is set when the error is raised.
CORE = """
    action_not_supported            405 <request_path>   action
    ancestor_circular_reference     400 <resource_xid>   list
    bad_defaultversionid            400 <request_path>   value error_detail
    bad_details                     400 <request_path>   -
    bad_filter                      400 <request_path>   value error_detail
    bad_flag                        400 <request_path>   flag
    bad_ignore                      400 <request_path>   value error_detail
    bad_inline                      400 <request_path>   value error_detail
    bad_request                     400 <request_path>   error_detail
    bad_sort                        400 <request_path>   value error_detail
    cannot_doc_xref                 400 <resource_xid>   -
    capability_error                400 /capabilities    error_detail
    capability_missing_value        400 /capabilities    name value
    capability_unknown              400 /capabilities    field
    capability_value                400 /capabilities    value field list
    capability_wildcard             400 /capabilities    field
    compatibility_unknown           400 <resource_xid>   compat format
    compatibility_violation         400 <resource_xid>   compat
    constraint_failure              400 <resource_xid>   path kind
    data_retrieval_error            500 <path>           -
    defaultversionid_request        400 <resource_xid>   -
    extra_xref_attribute            400 <resource_xid>   name singular
    format_external                 400 <version_xid>    -
    format_unknown                  400 <version_xid>    format
    format_violation                400 <version_xid>    format
    groups_only                     400 <request_path>   name
    hasdocument_violation           400 <version_xid>    plural
    inline_noninlineable            400 <request_path>   name
    invalid_attribute               400 <entity_xid>     name error_detail
    malformed_id                    400 <request_url>    id error_detail
    malformed_xid                   400 <request_url>    xid error_detail
    malformed_xref                  400 <request_url>    xref error_detail
    mismatched_epoch                400 <entity_xid>     bad_epoch epoch
    mismatched_id                   400 <entity_xid>     singular invalid_id expected_id
    mismatched_version_attribute    400 <resource_xid>   name
    misplaced_epoch                 400 <entity_xid>     -
    model_compliance_error          400 /model           -
    model_error                     400 /model           error_detail
    model_required_true             400 /model           name
    model_scalar_default            400 /model           name
    multiple_roots                  400 <resource_xid>   plural
    not_available                   400 <available_type> -
    not_found                       404 <entity_xid>     -
    one_resource                    400 <entity_xid>     list
    parsing_data                    400 -                error_detail
    readonly                        400 <entity_xid>     -
    required_attribute_missing      400 <entity_xid>     list
    resources_only                  400 <group_xid>      name
    server_busy                     503 <request_path>   -
    server_error                    500 <request_path>   -
    setdefaultversionsticky_false   400 <resource_xid>   -
    sort_noncollection              400 <request_path>   -
    too_large                       406 <request_path>   -
    too_many_versions               400 <request_path>   -
    unknown_attribute               400 <entity_xid>     name
    unknown_group_type              400 <entity_xid>     name
    unknown_id                      400 <entity_xid>     singular id
    unknown_resource_type           400 <entity_xid>     group name
    unsupported_specversion         400 <request_path>   specversion list
    versionid_not_allowed           400 <resource_xid>   plural
"""
HTTP = """
    api_not_found                   404 <request_path>   -
    details_required                405 <resource_xid>   -
    extra_xregistry_header          400 <request_path>   name error_detail
    header_error                    400 <request_path>   name error_detail
    missing_body                    400 <request_path>   -
    missing_versions                400 <request_path>   -
"""

#: Errors that no row can cause, by the reason.
UNREACHED = {
    "a caller with a role, which tables of requests do not have": {"readonly"},
    "the server, not the request": {"data_retrieval_error", "server_busy", "server_error", "too_large"},
}


class Row(NamedTuple):
    """A line of the tables above."""

    name: str
    status: int
    subject: str
    arguments: set[str]
    document: str

    @classmethod
    def of(cls, line: str, document: str) -> Row:
        name, status, subject, *arguments = line.split()
        return cls(name, int(status), subject, set(arguments) - {"-"}, document)


TABLE = [
    Row.of(line, document)
    for text, document in ((CORE, problems.SPEC), (HTTP, problems.HTTP))
    for line in text.strip().splitlines()
]


def test_the_catalogue_has_the_66_types_of_the_specification() -> None:
    # ERR-10: the catalogue has all types of the specification, and no others
    assert [len(text.strip().splitlines()) for text in (CORE, HTTP)] == [60, 6]
    assert sorted(PROBLEM_TYPES) == sorted(row.name for row in TABLE)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_error_types_equal_the_table(row: Row) -> None:
    # ERR-1, ERR-10: status, document, subject and arguments equal the table
    kind = PROBLEM_TYPES[row.name]
    assert kind.status == row.status
    assert kind.uri() == f"{row.document}#{row.name}"
    assert kind.placeholders() == row.arguments
    assert kind.fixed_subject == _fixed_subject(row.subject)


@pytest.mark.parametrize("kind", PROBLEM_TYPES.values(), ids=PROBLEM_TYPES.keys())
def test_a_title_names_its_subject_and_all_its_arguments(kind: type[Problem]) -> None:
    # ERR-1, ERR-2: placeholders are names, the title contains every value, the subject is no argument
    names = re.findall(r"<([^>]*)>", kind.title)
    assert all(re.fullmatch(r"[a-z][a-z0-9_]{0,62}", name) for name in names)
    values: dict[str, Any] = {name: f"the {name}" for name in kind.placeholders()}
    problem = kind(None if kind.fixed_subject is not None else "/a/b", **values)
    title = problem.text("/the/request")
    assert "subject" not in values
    assert all(value in title for value in values.values())
    assert not re.search(r"<[a-z_]+>", title)


@pytest.mark.parametrize("kind", PROBLEM_TYPES.values(), ids=PROBLEM_TYPES.keys())
def test_arguments_that_are_missing_or_too_many_are_refused(kind: type[Problem]) -> None:
    # ERR-10: the constructor fails if arguments and placeholders differ
    subject = None if kind.fixed_subject is not None else "/a/b"
    values: dict[str, Any] = dict.fromkeys(kind.placeholders(), "x")
    with pytest.raises(TypeError):
        kind(subject, **values, extra="x")
    with pytest.raises(TypeError):
        kind("/a/b" if subject is None else None, **values)
    for name in values:
        with pytest.raises(TypeError):
            kind(subject, **{key: value for key, value in values.items() if key != name})


def test_arguments_are_strings() -> None:
    # ERR-1: numbers and booleans become strings, spelled as in JSON
    problem = problems.MismatchedEpoch("/dirs/d1", bad_epoch=9, epoch=True)
    assert problem.arguments == {"bad_epoch": "9", "epoch": "true"}


def test_no_conflict_is_a_409_or_a_412() -> None:
    # ERR-7: mismatched epochs and ids result in 400
    assert not {kind.status for kind in PROBLEM_TYPES.values()} & {409, 412}


def test_every_type_that_can_be_raised_has_a_row_that_raises_it() -> None:
    # ERR-10: the rows of the HTTP tables cause every error type except those in UNREACHED
    unreached = set().union(*UNREACHED.values())
    assert _types_in_rows() >= set(PROBLEM_TYPES) - unreached
    assert not _types_in_rows() & unreached


def _fixed_subject(subject: str) -> str | None:
    if subject in (problems.REQUEST_PATH, problems.REQUEST_URL):
        return subject
    if subject == "-":
        return problems.NO_SUBJECT
    return None if subject.startswith("<") else subject


def _types_in_rows() -> set[str]:
    return {type for row in ROWS for type in _types(row)}


def _types(value: Any) -> Iterator[str]:
    """The types of all `problem` members anywhere in a table."""
    if isinstance(value, dict):
        problem = value.get("problem")
        if isinstance(problem, dict) and isinstance(problem.get("type"), str):
            yield problem["type"]
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _types(each)
