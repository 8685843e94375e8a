"""Which attributes clients may send for one level of the model, and which a replacement keeps."""

from __future__ import annotations

import json
from decimal import Decimal
from time import thread_time
from typing import Any

import pytest

from annals.domain.errors.problems import InvalidAttribute
from annals.domain.model import Level, Model, compile_model
from annals.domain.model.compiled_attributes import _switches
from annals.domain.model.validation.values import nested_size_check
from annals.domain.values.json_text import loads


def model(**files: Any) -> Model:
    return compile_model(
        {"groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file", **files}}}}}
    )


def version(**attributes: Any) -> Level:
    return model(attributes=attributes).groups["dirs"].resources["files"].version


def test_read_only_garbage_is_dropped() -> None:
    # ENT-15, P-15/35: with any value; ids stay, because they are compared later
    given = {"self": 42, "xid": [], "filescount": "x", "files": None, "filesurl": 1, "epoch": "y", "dirid": 42}
    assert model().groups["dirs"].level.accept(given) == {"dirid": 42}
    registry = {"registryid": 7, "specversion": 2, "model": {}, "modelsource": {}, "capabilities": 1, "dirs": {}}
    assert model().registry.accept(registry) == {"registryid": 7}


def test_a_version_drops_what_servers_set() -> None:
    # ENT-15, ENT-150: including `metaurl` and `versions`, because clients send back what they have read
    names = ["isdefault", "formatvalidated", "compatibilityvalidatedreason", "metaurl", "meta", "versions", "file"]
    assert version().accept(dict.fromkeys(names, "x") | {"fileurl": "u", "name": None}) == {
        "fileurl": "u",
        "name": None,
    }


def test_read_only_members_are_dropped_at_every_depth() -> None:
    # ENT-15: in objects, array items, map values, attributes under `*` and siblings under `ifvalues`
    secret = {"type": "object", "attributes": {"ro": {"type": "string", "readonly": True}, "rw": {"type": "any"}}}
    level = version(
        o=secret,
        a={"type": "array", "item": secret},
        m={"type": "map", "item": secret},
        s={"type": "string", "ifvalues": {"x": {"siblingattributes": {"t": {"type": "any", "readonly": True}}}}},
        **{"*": secret},
    )
    both, left = {"ro": 1, "rw": {"ro": 2}}, {"rw": {"ro": 2}}
    given = {"o": both, "a": [both], "m": {"k": both}, "other": both, "s": "X", "t": 1}
    assert level.accept(given) == {"o": left, "a": [left], "m": {"k": left}, "other": left, "s": "X"}
    assert level.accept({"t": 1}, stored={"s": "x"}) == {}
    assert level.accept({"o": 5}) == {"o": 5}


def test_equal_numbers_in_any_notation() -> None:
    # TRAP-1, MOD-24: integers become digits only; equal numbers match the same enum and activate the same siblings
    switched = {"100": {"siblingattributes": {"c": {"type": "string"}}}}
    level = version(
        i={"type": "integer", "enum": [100]}, d={"type": "decimal", "ifvalues": switched}, n={"type": "integer"}
    )
    born = "2026-01-01T00:00:00Z"
    own = {"fileid": "f", "versionid": "1", "ancestorid": "1", "createdat": born, "modifiedat": born}
    for written in (100, 1e2, Decimal("1E+2"), Decimal("100.0"), Decimal("1000E-1")):
        whole = level.complete({**own, "i": written, "d": written, "c": "x", "n": Decimal("12E+20")}, "/dirs/d/files/f")
        assert (repr(whole["i"]), whole["d"], whole["c"]) == ("100", written, "x")
        assert str(whole["n"]) == "1200000000000000000000"


@pytest.mark.parametrize(
    ("allowed", "given"),
    [
        ("0", "-0.0"),
        ("0", "0E9999"),
        ("-0", "0e-5000"),
        ("1e5000", "10e4999"),
        ("1E4097", "10E4096"),
        ("1e-7", "0.0000001"),
        ("1.50", "1.5"),
        ("18446744073709551616", "1.8446744073709551616E19"),
    ],
)
def test_numbers_are_equal_by_their_value(allowed: str, given: str) -> None:
    # TRAP-1, MOD-24: in enums, and in the keys of `ifvalues`, which are texts
    number, other = loads(allowed.encode()), loads(given.encode())
    switched = {allowed: {"siblingattributes": {"c": {"type": "string"}}}}
    level = version(
        e={"type": "decimal", "enum": [number], "default": other, "required": True},
        d={"type": "decimal", "ifvalues": switched},
    )
    born = "2026-01-01T00:00:00Z"
    own = {"fileid": "f", "versionid": "1", "ancestorid": "1", "createdat": born, "modifiedat": born}
    whole = level.complete({**own, "e": other, "d": other, "c": "x"}, "/dirs/d/files/f")
    assert (whole["e"], whole["d"], whole["c"]) == (other, other, "x")
    assert level.complete(own, "/dirs/d/files/f")["e"] == other


def test_the_first_of_equal_keys_counts() -> None:
    # MOD-24: models that earlier versions have stored may have several keys of `ifvalues` for one number
    branches: Any = {"1": {"siblingattributes": {"a": {}}}, "1.0": {"siblingattributes": {"b": {}}}}
    switches = _switches({"n": {"type": "decimal", "ifvalues": branches}}, ["n"])
    assert [*switches["n"].values()] == [{"a": {}}]


def test_a_replacement_keeps_what_clients_cannot_set() -> None:
    # ENT-15: a PUT keeps the stored value of a read-only attribute; other code handles attributes that the server sets
    level = version(a={"type": "string", "readonly": True}, b={"type": "string"})
    assert level.readonly_values({"a": "x", "b": "y", "epoch": 3, "self": "u", "isdefault": True}, {}) == {"a": "x"}
    meta = model().groups["dirs"].resources["files"].meta
    assert meta.readonly_values({"readonly": True, "defaultversionid": "1"}, {}) == {"readonly": True}


def test_serialization_order() -> None:
    # SER-12: the order of the model, siblings next to their `ifvalues` attribute, extensions by name, then document and
    # navigation
    level = version(
        p={"type": "string", "ifvalues": {"x": {"siblingattributes": {"q": {"type": "any"}}}}},
        r={"type": "string"},
        **{"*": {"type": "any"}},
    )
    names = ["versions", "meta", "fileurl", "zz", "aa", "r", "q", "p", "format", "epoch", "versionid", "fileid"]
    attributes = dict.fromkeys(names, "x")
    assert list(level.order(attributes)) == [
        *["fileid", "versionid", "epoch", "format", "p", "q", "r"],
        *["aa", "zz", "fileurl", "meta", "versions"],
    ]


def test_complete_is_in_serialization_order() -> None:
    # SER-12: the result of `complete` needs no sorting
    level = version(**{"*": {"type": "any"}})
    times = {"modifiedat": "2025-01-01T00:00:00Z", "createdat": "2025-01-01T00:00:00Z"}
    given = {"zz": 1, "labels": {"b": "", "a": ""}, **times, "ancestorid": "1", "versionid": "1", "fileid": "f"}
    done = level.complete(given, "/x")
    assert list(done) == list(level.order(done))
    assert list(done["labels"]) == ["a", "b"]


@pytest.mark.parametrize(("length", "fits"), [(4092, True), (4093, False)])
def test_names_and_values_fit_in_a_header(length: int, fits: bool) -> None:
    # ENT-13: name and value together have at most 4096 bytes, not characters
    level = compile_model({"attributes": {"abcd": {"type": "string"}}}).registry
    times = {"modifiedat": "2025-01-01T00:00:00Z", "createdat": "2025-01-01T00:00:00Z"}
    value = "é" * (length // 2) + "x" * (length % 2)
    given = {"registryid": "r", **times, "abcd": value}
    if fits:
        assert level.complete(given, "/")["abcd"] == value
    else:
        with pytest.raises(Exception, match="4096"):
            level.complete(given, "/")


@pytest.mark.parametrize(
    ("kind", "value", "path"),
    [
        ("any", "x" * 4093, "wide"),
        ("any", {"ab": "x" * 4095}, "wide.ab"),
        ("any", {"a": {"b": [0, {"c": "é" * 2048}]}}, "wide.a.b[1].c"),
        ("any", ["x" * 4093], "wide[0]"),
        ("any", [[], ["", "x" * 4093]], "wide[1][1]"),
        ("any", {"k" * 4097: 1}, "wide." + "k" * 4097),
        ("any", Decimal("1." + "0" * 4096 + "1"), "wide"),
        ("string", "x" * 4093, "wide"),
        ({"type": "map", "item": {"type": "any"}}, {"ab": {"c": ["x" * 4096]}}, "wide.ab.c[0]"),
        ({"type": "array", "item": {"type": "any"}}, [1, {"c": "x" * 4096}], "wide[1].c"),
        ({"type": "array", "item": {"type": "string"}}, ["", "x" * 4093], "wide[1]"),
        ({"type": "map", "item": {"type": "array", "item": {"type": "any"}}}, {"ab": ["x" * 4095]}, "wide.ab[0]"),
        (
            {"type": "array", "item": {"type": "object", "attributes": {"*": {"type": "any"}}}},
            [{"ab": "x" * 4095}],
            "wide[0].ab",
        ),
    ],
)
def test_extensions_fit_in_a_header_too(kind: str | dict[str, Any], value: Any, path: str) -> None:
    # ENT-13: in any value that `*` allows, each scalar counts together with the nearest name above it
    level = compile_model({"attributes": {"*": {"type": kind} if isinstance(kind, str) else kind}}).registry
    given = {"registryid": "r", "modifiedat": "2025-01-01T00:00:00Z", "createdat": "2025-01-01T00:00:00Z"}
    with pytest.raises(InvalidAttribute, match="4096") as problem:
        level.complete({**given, "wide": value}, "/")
    assert problem.value.arguments["name"] == path


@pytest.mark.parametrize(
    "value", ["x" * 4092, {"ab": "x" * 4094}, {"a": {"b": ["x" * 4095] * 9}}, [None, True, 1, "é" * 2046]]
)
def test_extensions_may_be_as_long_as_a_header(value: Any) -> None:
    # ENT-13: the limit is per scalar, so a whole value may be longer; a declared `any` has no limit
    level = compile_model({"attributes": {"*": {"type": "any"}, "document": {"type": "any"}}}).registry
    given = {"registryid": "r", "modifiedat": "2025-01-01T00:00:00Z", "createdat": "2025-01-01T00:00:00Z"}
    done = level.complete({**given, "wide": value, "document": {"text": "x" * 9999}}, "/")
    assert (done["wide"], done["document"]) == (value, {"text": "x" * 9999})


@pytest.mark.parametrize(
    "value",
    [[*range(1_000_000)], [1.5] * 1_000_000, ["text"] * 500_000],
    ids=["integers", "decimals", "texts"],
)
def test_large_extensions_are_measured_fast(value: list[Any]) -> None:
    # ENT-13: other writers wait during the check. Compared with the time in which Python encodes the value as JSON
    began = thread_time()
    json.JSONEncoder(check_circular=False).encode(value)
    written = thread_time()
    nested_size_check("wide")(value)
    assert thread_time() - written < 7 * (written - began)


@pytest.mark.parametrize(
    ("contenttype", "form"),
    [
        ("application/json", "json"),
        ("Application/JSON; charset=utf-8", "json"),
        ("application/vnd.x+json", "json"),
        ("text/plain", "string"),
        ("text/xml", "string"),
        ("text/csv", "binary"),
        ("application/secret+json", "binary"),
        ("image/png", "binary"),
        ("image/x-x", "string"),
        ("image/x", "binary"),  # the two parts of a pattern do not overlap
        (None, "binary"),
    ],
)
def test_documents_are_inlined_by_media_type(contenttype: str | None, form: str) -> None:
    # MOD-81, MOD-82, ENT-126: parameters and case are ignored; contradictory entries mean binary; explicit entries win
    typemap = {
        "text/x*": "string",
        "text/c*": "json",
        "*/csv": "string",
        "*/SECRET+json": "binary",
        "image/x*x": "string",
    }
    files = model(typemap=typemap).groups["dirs"].resources["files"]
    assert files.document_form(contenttype) == form


@pytest.mark.parametrize(
    ("name", "level"),
    [
        ("xregcorrelationid", version(**{"*": {"type": "any"}})),  # EV-32: the response would have this header twice
        ("subscriptions", compile_model({"attributes": {"*": {"type": "any"}}}).registry),  # HTTP-4: a reserved path
    ],
)
def test_no_extension_takes_a_name_of_ours(name: str, level: Level) -> None:
    with pytest.raises(InvalidAttribute, match="taken by the registry itself"):
        level.complete({"fileid": "f", "versionid": "1", "ancestorid": "1", "registryid": "r", name: "x"}, "/")
