"""OpenAPI documents: valid ones of the declared version are accepted, and nothing is fetched.

Rules SC-10, SC-14, SC-16. test_compatibility.py tests SC-36 and SC-39.
"""

from __future__ import annotations

import json
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from annals.domain.formats import openapi
from annals.domain.formats.contract import InvalidDocument
from tests.support.downloads import npm
from tests.support.examples import examples

TABLE: dict[str, list[Any]] = yaml.load((Path(__file__).parent / "openapi.yaml").read_text(), yaml.CSafeLoader)
PUBLISHED = "@octokit/openapi@23.0.2"


def minimal(version: str) -> dict[str, Any]:
    full = version if version.count(".") == 2 else f"{version}.0"
    keyword = {"swagger": "2.0"} if version == "2.0" else {"openapi": full}
    return {**keyword, "info": {"title": "t", "version": "1"}, "paths": {}}


def merge_patch(over: Any, under: Any) -> Any:
    """JSON Merge Patch (RFC 7396)."""
    if not isinstance(over, dict):
        return over
    made = dict(under) if isinstance(under, dict) else {}
    for name, value in over.items():
        if value is None:
            made.pop(name, None)
        else:
            made[name] = merge_patch(value, made.get(name))
    return made


def cases(section: str) -> list[Any]:
    return [
        pytest.param(row, version, id=f"{version}-{row['what']}")
        for row in TABLE[section]
        for version in row["versions"]
    ]


opened: list[str] = []
listening: list[bool] = []


def listen(event: str, arguments: object) -> None:
    if listening and (event in ("open", "urllib.Request") or event.startswith("socket.")):
        opened.append(f"{event} {arguments}")


sys.addaudithook(listen)  # for the rest of the process: an audit hook cannot be removed


@pytest.mark.parametrize(("row", "version"), cases("accepted"))
def test_valid_documents(row: dict[str, Any], version: str) -> None:
    # SC-10, SC-16, V-14: a valid document, as JSON and as YAML; no file or address in it is opened
    document = merge_patch(row["with"], minimal(version))
    openapi.parse(json.dumps(minimal(version)).encode(), f"openapi/{version}")  # loads the meta-schema
    listening.append(True)
    try:
        parsed = openapi.parse(json.dumps(document).encode(), f"OpenAPI/{version}")
        written = openapi.parse(yaml.safe_dump(document).encode(), f"openapi/{version}")
        inside = openapi.parse(json.dumps(yaml.safe_dump(document)).encode(), f"openapi/{version}")
    finally:
        listening.clear()
    assert opened == []
    assert openapi.canonical_form(parsed) == openapi.canonical_form(written) == openapi.canonical_form(inside)
    assert openapi.parse(openapi.canonical_form(parsed), f"openapi/{version}") == document


@pytest.mark.parametrize(("row", "version"), cases("refused"))
def test_invalid_documents(row: dict[str, Any], version: str) -> None:
    # SC-10: documents that the rules of the version forbid are refused, with the place
    document = merge_patch(row["with"], minimal(version))
    with pytest.raises(InvalidDocument, match=row["why"]) as caught:
        openapi.parse(json.dumps(document).encode(), f"openapi/{version}")
    assert caught.value.location is not None and caught.value.location.pointer is not None
    if "pointer" in row:
        assert caught.value.location.pointer == row["pointer"]


@pytest.mark.parametrize("row", TABLE["broken"], ids=lambda row: row["text"] or "empty")
def test_texts_that_are_not_openapi(row: dict[str, str]) -> None:
    # SC-14, SC-16: empty, broken, in another language
    with pytest.raises(InvalidDocument, match=row["why"]):
        openapi.parse(row["text"].encode(), "openapi/3.0")


@pytest.mark.parametrize("declared", ["2.0", "3.0", "3.0.1", "3.1", "3.2"])
def test_another_version_than_declared(declared: str) -> None:
    # SC-16: the declared version counts; one without a patch number stands for all its patch versions
    with pytest.raises(InvalidDocument):
        openapi.parse(json.dumps(minimal("3.0.3" if declared != "3.0" else "3.1.0")).encode(), f"openapi/{declared}")


def test_yaml_says_what_json_can_say() -> None:
    # SC-10: names are text, times stay text, `on` is not a boolean
    text = b"openapi: 3.1.0\ninfo: {title: on, version: 2020-01-01}\npaths: {/a: {get: {responses: "
    parsed = openapi.parse(text + b"{200: {description: 12:30}}}}}\n", "openapi/3.1")
    assert parsed["info"] == {"title": "on", "version": "2020-01-01"}
    assert parsed["paths"]["/a"]["get"]["responses"] == {"200": {"description": "12:30"}}


LAUGHS = "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12))
RING = {f"S{n}": {"$ref": f"#/components/schemas/S{(n + 1) % 9}"} for n in range(9)}
DEEP = {"S": json.loads('{"items":' * 300 + "{}" + "}" * 300)}
HOSTILE = {
    "deep JSON": b"[" * 200_000,
    "deep objects": b'{"a":' * 200_000,
    "deep YAML": b"- " * 200_000,
    "deep YAML in braces": b"a: " + b"[" * 20_000,
    "laughs": LAUGHS.encode(),
    "a huge number": b'{"a":' + b"9" * 100_000 + b"}",
    "a huge number in YAML": b"a: " + b"9" * 100_000,
    "not UTF-8": b'{"a": "\xff"}',
    "zero bytes": b"\0" * 1000,
    "a long name twice": b'{"' + b"a" * 100_000 + b'": 1, "' + b"a" * 100_000 + b'": 1}',
    "a ring of references": json.dumps(merge_patch({"components": {"schemas": RING}}, minimal("3.1"))).encode(),
    "a deep schema": json.dumps(merge_patch({"components": {"schemas": DEEP}}, minimal("3.1"))).encode(),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_hostile_documents(what: str) -> None:
    # V-14: each document is accepted or refused within seconds, without another exception
    openapi.parse(json.dumps(minimal("3.1")).encode(), "openapi/3.1")
    began = time.process_time()
    try:
        openapi.canonical_form(openapi.parse(HOSTILE[what], "openapi/3.1"))
    except InvalidDocument as violation:
        assert len(violation.text) < 1000
    assert time.process_time() - began < 10


@settings(max_examples=examples(200), deadline=None)
@given(st.binary(max_size=40) | st.text("openapi: 3.1.0{}[]&*!|>-\n\"'#?,", max_size=60).map(str.encode))
def test_any_bytes(document: bytes) -> None:
    # V-14: each text is accepted, or refused as an invalid document
    try:
        openapi.parse(document, "openapi/3.1")
    except InvalidDocument as violation:
        assert violation.text


def test_the_meta_schemas_are_no_documents() -> None:
    # SC-16: JSON Schema is another language, even if it describes OpenAPI
    found = find_spec("openapi_spec_validator")
    assert found is not None and found.origin is not None
    files = sorted(Path(found.origin).parent.rglob("schema.json"))
    assert files
    for file in files:
        with pytest.raises(InvalidDocument):
            openapi.parse(file.read_bytes(), "openapi/3.1")


def test_a_published_document() -> None:
    # SC-10: the part of GitHub's published document that has the paths below /licenses, /emojis and /meta
    home = npm.packages(PUBLISHED)
    text = (home / "node_modules/@octokit/openapi/generated/api.github.com.json").read_text()
    whole = json.loads(text)
    whole["paths"] = {
        path: item for path, item in whole["paths"].items() if path.startswith(("/licenses", "/emojis", "/meta"))
    }
    used_text = json.dumps(whole["paths"])
    used: dict[str, dict[str, Any]] = {}
    while fresh := [
        (kind, name, part)
        for kind, parts in whole["components"].items()
        for name, part in parts.items()
        if name not in used.get(kind, {}) and f'"#/components/{kind}/{name}"' in used_text
    ]:
        for kind, name, part in fresh:
            used.setdefault(kind, {})[name] = part
            used_text += json.dumps(part)
    whole["components"], whole["x-webhooks"] = used, {}
    version = whole["openapi"].rpartition(".")[0]
    parsed = openapi.parse(json.dumps(whole).encode(), f"openapi/{version}")
    assert parsed["paths"]
    whole["paths"]["/emojis"]["get"]["responses"]["200"] = {"$ref": "#/components/responses/nowhere"}
    with pytest.raises(InvalidDocument, match="leads to nothing"):
        openapi.parse(json.dumps(whole).encode(), f"openapi/{version}")
