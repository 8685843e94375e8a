"""Attributes in headers: values, names and types."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals.api.registry.header_attributes import HeaderCodec
from annals.domain.errors import problems
from annals.domain.model import compile_model
from annals.domain.values.header_values import InvalidHeaderValue, decode, encode, encode_text
from annals.domain.values.json_text import loads_trusted
from tests.support.registries.in_process import MODEL

TYPES = HeaderCodec(compile_model(MODEL).groups["dirs"].resources["files"])
TEXT = st.text(st.characters(codec="utf-8"))


@given(TEXT)
def test_decoding_undoes_encoding(value: str) -> None:
    # HTTP-60, HTTP-61: any text survives, and what is sent is printable ASCII without space, quote and stray percent.
    assert decode(encode(value)) == value
    assert re.fullmatch(r"(?:[!#$&-~]|%[0-9A-F]{2})*", encode(value))


@given(TEXT)
def test_no_header_can_be_split(value: str) -> None:
    # HTTP-43: a media type or URL goes out as it is, but never with a line end or a byte beyond ASCII.
    assert re.fullmatch(r"[ -~]*", encode_text(value))


@pytest.mark.parametrize(
    ("sent", "value"),
    [
        ("Euro%20%E2%82%AC%20%F0%9F%98%80", "Euro € 😀"),  # HTTP-62: the test vector
        ("%e2%82%ac", "€"),  # HTTP-61: lower-case hex
        ("%41b", "Ab"),  # HTTP-61: needless encoding
        ('"a \\"b\\" c"', 'a "b" c'),  # HTTP-61: quoted strings are undone first
        ('"%20"', " "),  # HTTP-61: and then the percent-encoding
        ("%2520", "%20"),  # HTTP-61: one round only
        ("", ""),  # HTTP-63: empty is the empty string
    ],
)
def test_decoding(sent: str, value: str) -> None:
    assert decode(sent) == value


@pytest.mark.parametrize("sent", ["%C0%A0", "%FF", "%E2%82", "\xff"])
def test_what_is_no_utf8_is_refused(sent: str) -> None:
    # HTTP-61: byte sequences that are not UTF-8, overlong ones included
    with pytest.raises(InvalidHeaderValue):
        decode(sent)


def test_scalars_and_maps_of_scalars_become_headers() -> None:
    # HTTP-41, HTTP-43: the first dot separates map and key; arrays, objects, other maps and contenttype are left out
    shown = loads_trusted(
        '{"fileid":"f1","epoch":3,"isdefault":true,"labels":{"a.b":"x y","c":""},"contenttype":"text/plain",'
        '"tags":["t"],"size":12345678901234567890123,"other":{"a":1}}'
    )
    assert TYPES.encode(shown) == [
        (b"xregistry-fileid", b"f1"),
        (b"xregistry-epoch", b"3"),
        (b"xregistry-isdefault", b"true"),
        (b"xregistry-labels.a.b", b"x%20y"),
        (b"xregistry-labels.c", b""),
        (b"xregistry-size", b"12345678901234567890123"),
    ]


def test_headers_become_attributes_of_the_models_types() -> None:
    # HTTP-45, HTTP-48: values take the model's types, `null` deletes, the given keys are the whole map
    given = [
        ("name", "My%20file"),
        ("epoch", "3"),
        ("size", "7"),
        ("icon", "null"),
        ("description", ""),
        ("labels.a.b", "x"),
        ("labels.c", "null"),
        ("isdefault", "garbage"),  # ENT-15: a read-only attribute may have any value
        ("extra", "5"),  # HTTP-48: `any` is a string
    ]
    assert TYPES.decode(given, "/x") == {
        "name": "My file",
        "epoch": 3,
        "size": 7,
        "icon": None,
        "description": "",
        "labels": {"a.b": "x"},
        "isdefault": "garbage",
        "extra": "5",
    }


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("size", "x", problems.InvalidAttribute),  # HTTP-48: no number
        ("size", "true", problems.InvalidAttribute),
        ("tags", "x", problems.InvalidAttribute),  # HTTP-48: an array has no header form
        ("tags.a", "x", problems.InvalidAttribute),
        ("labels", "x", problems.InvalidAttribute),  # HTTP-48: a map has a header for each key
        ("file", "x", problems.ExtraXregistryHeader),  # HTTP-46: the body is the document
        ("filebase64", "x", problems.ExtraXregistryHeader),
        ("contenttype", "x", problems.ExtraXregistryHeader),  # HTTP-46: Content-Type has it
        ("name", "%FF", problems.HeaderError),  # HTTP-61
    ],
)
def test_headers_that_are_refused(name: str, value: str, problem: type[problems.Problem]) -> None:
    with pytest.raises(problem):
        TYPES.decode([(name, value)], "/x")


def test_a_quoted_string_that_does_not_end() -> None:
    # HTTP-61: its quotation mark is an ordinary character, and decoding takes linear time
    for value in ('"a\\"b', 'x "a" "b', '"' + '\\"' * 30_000, '"' + '\\"' * 30_000 + "\\"):
        assert decode(value) == value.replace('"a"', "a")


def test_a_header_given_twice_is_refused() -> None:
    # HTTP-45: one header, one value
    for twice in ([("name", "a"), ("name", "b")], [("labels.a", "1"), ("labels.a", "2")]):
        with pytest.raises(problems.HeaderError):
            TYPES.decode(twice, "/x")
