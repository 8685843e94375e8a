"""The region "Check result" says what a save would say (UI-82)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from annals.api.ui.edit.document_places import place_text
from annals.domain.model.builtin import default_source
from tests.api.ui.pages import TOKENS, submit
from tests.support.html_pages import HtmlPage
from tests.support.registries.in_process import Api, create, serving

SCHEMA = "schemagroups/g/schemas/s"
SAVE, CHECK = {"form action": "save"}, {"form action": "check"}


def record(*names: str) -> dict[str, Any]:
    """An Avro schema whose fields have no defaults."""
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": "string"} for name in names]}


@pytest.fixture
def api(sqlite_url: str) -> Iterator[Api]:
    """A schema with one Version, and one with two; new Versions have to be backward compatible."""
    create(sqlite_url, default_source())
    with serving(sqlite_url, tokens=json.dumps(TOKENS)) as api:
        version = {"format": "Avro/1.11", "contenttype": "application/json", "schema": record("a", "b")}
        for id in ("s", "t"):
            path = f"/schemagroups/g/schemas/{id}"
            api.done("PUT", f"{path}/versions/1$details", version, authorization="Bearer root")
            api.done("PATCH", f"{path}/meta", {"compatibility": "backward"}, authorization="Bearer root")
        later = version | {"ancestorid": "1"}
        api.done("PUT", "/schemagroups/g/schemas/t/versions/2$details", later, authorization="Bearer root")
        yield api


def fields(document: dict[str, Any]) -> dict[str, str]:
    """The fields of the form."""
    text = json.dumps(document)
    meta = {"meta.compatibility": "backward", "meta.defaultversionid": "1"}
    return {
        "format": "Avro/1.11",
        "contenttype": "application/json",
        "document text": text,
        "loaded epoch": "1",
        **meta,
    }


def checked(api: Api, path: str, document: dict[str, Any]) -> str:
    answer = submit(api, path, **CHECK, **fields(document))
    return HtmlPage(answer.text).region("Check result").text


@pytest.mark.parametrize("path", [f"edit/{SCHEMA}", f"edit/{SCHEMA}/versions/1"])
def test_a_first_version_that_is_edited_in_place(api: Api, path: str) -> None:
    """UI-82, SC-32: neither a check nor a save compares a first Version with the document that it replaces."""
    result = checked(api, path, record("a", "b", "c"))
    assert "Not compatible" not in result and "There is nothing to compare with." in result
    answer = submit(api, path, **SAVE, **fields(record("a", "b", "c")), **{"loaded meta epoch": "2"})
    assert answer.status_code == 303, HtmlPage(answer.text).main.text


def test_what_follows_a_version_that_is_edited_in_place(api: Api) -> None:
    """UI-82: an edited Version is compared with the Versions that follow it, as in a save."""
    path = "edit/schemagroups/g/schemas/t/versions/1"
    assert "Not compatible" in checked(api, path, record("a")) and "Version 2" in checked(api, path, record("a"))
    answer = submit(api, path, **SAVE, **fields(record("a")))
    assert answer.status_code == 400 and "compatible" in HtmlPage(answer.text).statuses[0]
    assert "Not compatible" not in checked(api, path, record("a", "b", "c"))


def test_a_new_version_is_compared_with_the_one_before(api: Api) -> None:
    """UI-82."""
    result = checked(api, f"new/{SCHEMA}/versions", record("a", "b", "c"))
    assert "Not compatible" in result and "reader-field-missing-default" in result


@pytest.mark.parametrize(
    ("location", "document", "place"),
    [
        ({"pointer": "/fields/1"}, '{"name": "R",\n "fields": ["a",\n  {"b": 1}]}', "line 3, column 3, at /fields/1"),
        ({"pointer": "/a~1b/~0"}, '{"x": {"~": 1}, "a/b" : {"y": [], "~":2}}', "line 1, column 39, at /a~1b/~0"),
        ({"pointer": ""}, "\n {}", "line 2, column 2"),
        ({"pointer": "/missing"}, '{"a": 1}', "at /missing"),
        ({"pointer": "/0"}, "no JSON", "at /0"),
        ({"pointer": "/0"}, "[", "at /0"),
        ({"line": 2, "fragment": "int32 a"}, "message M {\n  int32 a = 1;\n}", "line 2, column 3"),
        ({"line": 2}, "a\n\t b", "line 2, column 3"),
        ({"line": 9}, "a", "line 9"),
        ({}, "a", ""),
    ],
)
def test_places_have_line_and_column(location: dict[str, Any], document: str, place: str) -> None:
    """UI-81."""
    assert place_text(location, document) == place


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{\n "type": "record", "name" 1}', "line 2, column 27"),
        ('{"type": "x"', "line 1, column 13"),
        ('{"type":\n\n ]', "line 3, column 2"),
        ("\n", "line 2, column 1"),
    ],
)
def test_a_syntax_error_names_its_place_once(api: Api, text: str, place: str) -> None:
    """UI-81, UI-82: the column is that of the error, and not of the line, and no message says it twice."""
    path, form = f"new/{SCHEMA}/versions", fields({}) | {"document text": text, "versionid": "2"}
    page = HtmlPage(submit(api, path, **CHECK, **form).text)
    ((what, _, shown, *_),) = page.table("Violations")
    assert shown == place and what.startswith("the document is not JSON: ") and "line" not in what
    refused = HtmlPage(submit(api, path, **SAVE, **form).text)
    (message,) = (each.text for each in refused.main.all("p") if each.attributes.get("id") == "document-error")
    assert message == f"{what} ({place})"


def test_a_refusal_is_at_line_and_column(api: Api) -> None:
    """UI-81, UI-82: line and column are in the message at the document, and in the table of the check."""
    lines = json.dumps(record("a", "b", "c"), indent=1)
    row = lines.split("\n").index('   "name": "c",')
    path, form = f"new/{SCHEMA}/versions", fields({}) | {"document text": lines, "versionid": "2"}
    refused = HtmlPage(submit(api, path, **SAVE, **form).text)
    assert f"line {row}, column 3, at /fields/2" in refused.main.text
    assert f"line {row}, column 3, at /fields/2" in HtmlPage(submit(api, path, **CHECK, **form).text).main.text
