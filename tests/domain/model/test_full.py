"""The full model, which `GET /model` returns."""

from __future__ import annotations

import pytest

from annals.domain.model import Model, compile_model
from tests.data import EXPANSIONS, read
from tests.data.model_rows import rows


def full_files(**aspects: object) -> dict[str, object]:
    """Returns the full form of the type `files` with the given aspects."""
    source = {"groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file", **aspects}}}}}
    files: dict[str, object] = compile_model(source).full["groups"]["dirs"]["resources"]["files"]
    return files


@pytest.mark.parametrize("name", EXPANSIONS)
def test_a_small_model_expands_to_a_full_one(name: str) -> None:
    # MOD-91, MOD-99, C-15: spec-defined attributes at each level, with the published types, without redundant aspects
    source, expected = map(read, EXPANSIONS[name])
    full = compile_model(source).full
    assert (rows(full) if name == "letters" else full) == expected


def test_attributes_say_their_names_and_enums_whether_they_are_strict() -> None:
    # MOD-99: the tables of rows in the other tests do not contain these two aspects
    files = full_files()
    parts = ("attributes", "resourceattributes", "metaattributes")
    assert all(each["name"] == name for part in parts for name, each in files[part].items())  # type: ignore[attr-defined]
    assert files["metaattributes"]["compatibility"]["strict"] is True  # type: ignore[index]


def test_attributes_are_in_serialization_order() -> None:
    # SER-12: spec attributes, then extensions, then the document, in the order of 2.10
    names = list(full_files(attributes={"zeta": {"type": "string"}, "alpha": {"type": "string"}})["attributes"])  # type: ignore[call-overload]
    assert names[:5] == ["fileid", "versionid", "self", "shortself", "xid"]
    assert names[-7:] == [
        *["compatibilityvalidated", "compatibilityvalidatedreason"],
        *["zeta", "alpha"],
        *["fileurl", "file", "filebase64"],
    ]


def test_defaults_of_attribute_aspects_are_not_written() -> None:
    # MOD-99: false flags, the strict charset and an empty enum are defaults; a description is not
    given = {
        "a": {"type": "object", "namecharset": "STRICT", "required": False, "attributes": {}},
        "b": {"type": "string", "enum": [], "strict": True, "description": "kept"},
        "c": {"type": "string", "enum": ["x"]},
        "d": {"type": "string", "enum": ["x"], "strict": False},
    }
    attributes = full_files(attributes=given)["attributes"]
    assert [attributes[name] for name in "abcd"] == [  # type: ignore[index]
        {"name": "a", "type": "object"},
        {"name": "b", "type": "string", "description": "kept"},
        {"name": "c", "type": "string", "enum": ["x"], "strict": True},
        {"name": "d", "type": "string", "enum": ["x"], "strict": False},
    ]


def test_aspects_of_types_are_written_out() -> None:
    # MOD-99, MOD-7, C-22: with their defaults, in lower case, and with what a computed mode implies
    files = full_files(versionmode="CreatedAt", typemap={"text/*": "STRING"})
    assert files["versionmode"] == "createdat"
    assert files["singleversionroot"] is True
    assert files["setversionid"] is True and files["maxversions"] == 0
    assert files["typemap"] == {"text/*": "string"}


def test_types_without_documents_have_no_document_attributes() -> None:
    # MOD-4: none of the three attributes of a document
    assert not {"file", "fileurl", "filebase64"} & full_files(hasdocument=False)["attributes"].keys()  # type: ignore[attr-defined]


def test_overlaid_attributes_keep_what_the_source_leaves_out() -> None:
    # MOD-91, MOD-8: a definition of `deprecated` in the source adds members to it and removes none
    given = {"deprecated": {"type": "object", "attributes": {"docs": {"type": "url"}}}}
    source = {"groups": {"dirs": {"singular": "dir", "attributes": given}}}
    deprecated = compile_model(source).full["groups"]["dirs"]["attributes"]["deprecated"]
    assert list(deprecated["attributes"]) == ["alternative", "documentation", "effective", "removal", "docs", "*"]


def test_the_source_is_kept_as_sent() -> None:
    # MOD-75, MOD-96: directives stay in the source and are absent from the full model
    source = {
        "groups": {
            "as": {"singular": "a", "resources": {"files": {"singular": "file"}}},
            "bs": {"$include": "#/groups/as", "singular": "b", "resources": {}, "ximportresources": ["/as/files"]},
        }
    }
    model = compile_model(source)
    assert model.source == source
    assert "ximportresources" not in model.full["groups"]["bs"]
    assert "$include" not in model.full["groups"]["bs"]


def test_nothing_is_the_empty_model() -> None:
    # ENT-69: null and {} both mean a model with the spec-defined attributes only
    assert compile_model(None).full == compile_model({}).full
    assert compile_model({}).groups == {}


def test_a_stored_model_is_loaded_as_it_was() -> None:
    # MOD-71, MOD-73: includes and imports are resolved once, when the model is written
    source = {
        "groups": {
            "as": {"singular": "a", "resources": {"files": {"singular": "file"}}},
            "bs": {"singular": "b", "ximportresources": ["/as/files"]},
            "cs": {"singular": "c", "ximportresources": ["/bs/files"]},
        }
    }
    model = compile_model(source)
    for loaded in (Model.load(source, model.full), Model.load(source, model.full, model.origins)):
        assert loaded.full == model.full
        origins = [loaded.groups[plural].resources["files"].origin for plural in ("as", "bs", "cs")]
        assert origins == ["/as/files"] * 3
