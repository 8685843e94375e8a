"""`$include`: directives of a modelsource are replaced by the parts of documents that they refer to."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from time import thread_time
from typing import Any

import pytest

from annals.domain.errors.problems import ModelError
from annals.domain.model import compile_model
from annals.domain.model.source.imports import MAX_TYPES, expand_imports
from annals.domain.model.source.includes import MAX_ELEMENTS, MAX_OBJECTS, expand_includes
from tests.data import MODELS, SPEC, read, read_from_folder

#: Folders of model files that include each other, and whether a fragment in them may lack its slash.
FOLDERS = [(MODELS / "included" / name, name == "house") for name in ("box", "sender", "house")]
if SPEC is not None:
    FOLDERS += [(SPEC / name, name == "cloudevents") for name in ("endpoint", "message", "schema", "cloudevents")]


def library(**documents: Any) -> Callable[[str], Any]:
    """Returns a reader of documents by resolved reference: `a/b.json` is the argument `a_b`."""
    return lambda name: documents[name.removesuffix(".json").replace("/", "_")]


def test_what_is_there_wins_over_what_is_included() -> None:
    # MOD-73: local members first, then earlier references over later ones
    include = library(one={"a": 1, "b": 1, "c": 1}, two={"b": 2, "c": 2, "d": 2})
    assert expand_includes({"a": 0, "$includes": ["one.json", "two.json"]}, include) == {"a": 0, "b": 1, "c": 1, "d": 2}


def test_references_are_relative_to_their_document() -> None:
    # MOD-72, CM-04: relative to the document with the reference, `endpoint/model.json`, wherever that is included
    include = library(
        endpoint_model={"groups": {"e": {"$include": "../message/model.json#/groups/m"}}},
        message_model={"groups": {"m": {"singular": "x"}}},
    )
    assert expand_includes({"$include": "endpoint/model.json#/groups"}, include) == {"e": {"singular": "x"}}


def test_references_to_the_own_document_mean_the_included_one() -> None:
    # MOD-72: a bare fragment is relative to the document it is in
    include = library(other={"a": {"$include": "#/b"}, "b": {"found": True}})
    assert expand_includes({"$include": "other.json#/a", "b": {"found": False}}, include) == {
        "found": True,
        "b": {"found": False},
    }


def test_pointers_are_unescaped() -> None:
    # MOD-72: RFC 6901 escapes and percent encoding
    assert expand_includes({"x": {"$include": "#/a~1b/c%20d"}, "a/b": {"c d": {"e": 1}}})["x"] == {"e": 1}


@pytest.mark.parametrize("reference", ["a.json", "a.json#/x"])
def test_chains_that_return_are_refused(reference: str) -> None:
    # MOD-73: a cycle through any number of documents
    include = library(a={"x": {"$include": "b.json"}, "$include": "b.json"}, b={"$include": reference})
    with pytest.raises(ModelError, match="includes itself"):
        expand_includes({"$include": reference}, include)


def test_small_documents_cannot_grow_without_bounds() -> None:
    # MOD-74: each of the ten members of an object includes the next object; ten levels would make 10^10 objects
    source = {f"o{n}": {f"m{m}": {"$include": f"#/o{n + 1}"} for m in range(10)} for n in range(10)}
    with pytest.raises(ModelError, match="too much"):
        expand_includes({**source, "o10": {}})


def test_what_cannot_be_read_is_a_model_error() -> None:
    # MOD-74: for any error of the reader
    with pytest.raises(ModelError, match="nope"):
        expand_includes({"$include": "nope.json"}, library())


def test_the_loose_form_of_a_fragment_is_for_files_only() -> None:
    # CM-05: one published file contains `#groups`; the model of a client has to use `#/groups`
    include = library(a={"groups": {"dirs": {"singular": "dir"}}})
    source = {"groups": {"$include": "a.json#groups"}}
    assert list(compile_model(expand_includes(source, include, is_lenient=True)).groups) == ["dirs"]
    with pytest.raises(ModelError, match="JSON Pointer"):
        expand_includes(source, include)


def test_the_schema_of_an_included_document_stays_behind() -> None:
    # MOD-8: published models start with `$schema`
    include = library(a={"$schema": "http://x.y/z", "singular": "dir"})
    assert list(compile_model(expand_includes({"groups": {"dirs": {"$include": "a.json"}}}, include)).groups) == [
        "dirs"
    ]


@pytest.mark.parametrize(("folder", "loose"), FOLDERS, ids=lambda each: getattr(each, "name", ""))
def test_models_in_files_load_unchanged(folder: Path, loose: bool) -> None:
    # MOD-8, CM-04, CM-05: references are relative to the folder of the file
    source = expand_includes(read(folder / "model.json"), read_from_folder(folder), is_lenient=loose)
    assert compile_model(source).groups


def test_the_arrays_of_a_model_have_so_many_elements_at_most() -> None:
    # MOD-73: each element is checked while other writers wait
    half = {"type": "integer", "enum": [*range(MAX_ELEMENTS // 2)]}
    expand_includes({"attributes": {"a": half, "b": half}})
    with pytest.raises(ModelError, match=f"the model: its arrays have more than {MAX_ELEMENTS} elements"):
        expand_includes({"attributes": {"a": half, "b": half, "c": {"type": "integer", "enum": [1]}}})


def own(groups: int, resources: int) -> dict[str, Any]:
    """Returns Group types with Resource types of their own."""
    types = {f"r{number}s": {"singular": f"r{number}"} for number in range(resources)}
    return {f"g{number}s": {"singular": f"g{number}", "resources": types} for number in range(groups)}


def importing(groups: int, resources: int) -> dict[str, Any]:
    """Returns the same number of types, but all Group types except one import their Resource types."""
    references = [f"/g0s/r{number}s" for number in range(resources)]
    further = {f"g{n}s": {"singular": f"g{n}", "ximportresources": references} for n in range(1, groups)}
    return {**own(1, resources), **further}


@pytest.mark.parametrize("made", [own, importing])
@pytest.mark.parametrize(("groups", "resources"), [(MAX_TYPES, 0), (1, MAX_TYPES - 1), (10, MAX_TYPES // 10 - 1)])
def test_a_model_has_so_many_types_at_most(
    made: Callable[[int, int], dict[str, Any]], groups: int, resources: int
) -> None:
    # MOD-70, MOD-71: imported types count, because each type has dozens of attributes that the specification defines
    given = made(groups, resources)
    assert sum(map(len, expand_imports(given).values())) == groups * resources
    with pytest.raises(ModelError, match=f"more than {MAX_TYPES} types of Groups and Resources"):
        expand_imports(given | {"others": {"singular": "other"}})


def test_a_model_at_its_bounds_is_compiled_in_seconds() -> None:
    # other writers wait for the compilation; the bound is generous, because the machine may be busy
    attributes = {f"a{number}": {"type": "string"} for number in range(MAX_OBJECTS - 2 * MAX_TYPES)}
    began = thread_time()
    compile_model({"attributes": attributes, "groups": own(10, MAX_TYPES // 10 - 1)})
    assert thread_time() - began < 10


def test_a_model_has_so_many_objects_at_most() -> None:
    # MOD-73: an object counts each time it is included, because each copy is compiled
    hundred = {f"a{number}": {"type": "any"} for number in range(100)}
    source = {"some": hundred, **{f"b{number}": {"$include": "#/some"} for number in range(MAX_OBJECTS // 101)}}
    with pytest.raises(ModelError, match=f"the model: it has more than {MAX_OBJECTS} objects"):
        expand_includes(source)
