"""Histories: random lists of writes to a few entities, under models with every version mode.

A Step is a request. `command` converts it to a command, `as_request` to an HTTP request. Many steps are refused, on
purpose: every property has to hold after a refusal too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from annals.domain.decisions.commands import Command, DeleteEntities, ReplaceModel, WriteMethod, WriteTree
from tests.support.registries.requests import Request, delete_all_rows
from tests.support.stores import schema_of

MODES: Final = ("manual", "createdat", "modifiedat", "semver")
#: Version ids that every mode accepts, oldest first by semantic versioning.
VERSIONS: Final = ("1.0.0-rc.1", "1.0.0", "1.1.0", "2.0.0")
#: Few, so that a history writes the same ones repeatedly.
RESOURCES: Final = ("/dirs/a/files/f1", "/dirs/a/files/f1", "/dirs/a/files/f2", "/dirs/a/notes/f1", "/dirs/b/files/f1")
#: Some are equal, so that ids have to break ties, and one is in the future.
TIMES: Final = ("2020-01-01T00:00:00Z", "2020-01-01T02:00:00+02:00", "2021-06-01T12:00:00.5Z", "2040-01-01T00:00:00Z")
#: Any text, and as often a text of characters with a meaning in headers.
TEXTS: Final = st.one_of(st.text('%"\\ 4aF', max_size=12), st.text(max_size=40))

#: Hypothesis settings for tests that generate histories, which are slow.
UNHURRIED: dict[str, Any] = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@dataclass(frozen=True, slots=True)
class Step:
    """One request. body: a JSON value, None for no body, bytes for a document. query: the flags."""

    method: str
    path: str
    body: Any = None
    query: tuple[tuple[str, str], ...] = ()

    def __repr__(self) -> str:
        flags = "&".join(f"{name}={value}" for name, value in self.query)
        return f"{self.method} {self.path}{'?' + flags if flags else ''} {self.body!r}"


def command(step: Step) -> Command:
    """The command of a Step."""
    flags: dict[str, Any] = dict(step.query)
    if step.path == "/modelsource":
        return ReplaceModel(step.body)
    if step.method == "DELETE":
        return DeleteEntities(step.path, step.body, **flags)
    if isinstance(step.body, bytes):
        return WriteTree(step.path, {"contenttype": None}, WriteMethod(step.method), document=step.body, **flags)
    return WriteTree(step.path, step.body, WriteMethod(step.method), **flags)


def model(
    mode: str = "manual",
    maxversions: int = 0,
    *,
    one_root: bool = False,
    stage: str = "free",
    documents: bool = False,
    more: bool = False,
) -> dict[str, Any]:
    """A modelsource: `files` as the arguments say, `notes` always manual and without documents.

    stage: the attribute `stage` of files: `free` is any string, `some` an enum, `must` an enum, required, with a
    default. more: adds types that no step uses, so that model changes add and remove types.
    """
    free = {"name": "*", "type": "any"}
    stages: dict[str, Any] = {
        "free": {"stage": {"type": "string"}},
        "some": {"stage": {"type": "string", "enum": ["alpha", "beta"]}},
        "must": {"stage": {"type": "string", "enum": ["alpha", "beta"], "required": True, "default": "alpha"}},
    }
    files = {
        "singular": "file",
        "hasdocument": documents,
        "versionmode": mode,
        "maxversions": maxversions,
        "attributes": stages[stage] | {"*": free},
    }
    files |= {"singleversionroot": True} if one_root or mode != "manual" else {}
    notes = {"singular": "note", "hasdocument": False, "attributes": {"*": free}}
    resources = {"files": files, "notes": notes} | ({"pens": {"singular": "pen"}} if more else {})
    dirs = {"singular": "dir", "resources": resources}
    return {"groups": {"dirs": dirs} | ({"boxes": {"singular": "box"}} if more else {})}


def models(documents: bool = False) -> SearchStrategy[dict[str, Any]]:
    """Modelsources that differ in how Versions are ordered, counted and described."""
    return st.builds(
        model,
        st.sampled_from(MODES),
        st.sampled_from((0, 0, 0, 1, 2, 3)),
        one_root=st.booleans(),
        stage=st.sampled_from(("free", "free", "some", "must")),
        documents=st.just(documents),
        more=st.booleans(),
    )


def histories(documents: bool = False, most: int = 20) -> SearchStrategy[list[Step]]:
    """A model, then writes, of which a few are model changes."""
    changes = st.builds(Step, st.just("PUT"), st.just("/modelsource"), models(documents))
    writes = (*_WRITES, *_WRITES, *_WRITES, *_DELETIONS, changes, *([_DOCUMENT] * 3 if documents else []))
    steps = st.lists(st.one_of(*writes), min_size=6, max_size=most)
    return st.builds(lambda first, rest: [first, *rest], changes, steps)


def _some(names: dict[str, SearchStrategy[Any]]) -> SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=names)


_IDS = st.sampled_from(VERSIONS)
_TEXTS = st.sampled_from(("x", "y", "10", "é \U0001f600"))
_GROUPS = st.sampled_from(("/dirs/a", "/dirs/b"))
_RESOURCES = st.sampled_from(RESOURCES)
_WRITE = st.sampled_from(("PUT", "PATCH"))
_FLAG = st.one_of(
    st.just(()),
    st.just(()),
    st.builds(lambda value: (("setdefaultversionid", value),), st.one_of(_IDS, st.just("null"))),
)
_EPOCH = st.one_of(st.just(()), st.just(()), st.builds(lambda n: (("epoch", str(n)),), st.integers(1, 4)))

_COMMON: Final[dict[str, SearchStrategy[Any]]] = {
    "name": st.one_of(_TEXTS, st.none()),
    "labels": st.one_of(st.none(), st.dictionaries(st.sampled_from(("a", "b.c")), _TEXTS, max_size=2)),
    "createdat": st.one_of(st.sampled_from(TIMES), st.none()),
    "epoch": st.sampled_from((1, 1, 2)),
}
_VERSION = _some(
    _COMMON
    | {
        "modifiedat": st.sampled_from(TIMES),
        "ancestorid": st.sampled_from((*VERSIONS, *[None] * 8)),
        "stage": st.sampled_from(("alpha", "beta", "gamma", None)),
        "size": st.one_of(st.integers(-3, 3), st.none()),
    }
)
_META = _some(
    {
        "labels": _COMMON["labels"],
        "defaultversionid": st.one_of(_IDS, st.none()),
        "defaultversionsticky": st.booleans(),
        "deprecated": st.sampled_from(({}, None)),
    }
)
_VERSION_MAP = st.dictionaries(_IDS, _VERSION, max_size=3)
_RESOURCE = st.builds(
    lambda attributes, nested: attributes | nested,
    _VERSION,
    _some({"versionid": _IDS, "meta": _META, "versions": _VERSION_MAP}),
)
_GROUP = _some(_COMMON | {"files": st.dictionaries(st.sampled_from(("f1", "f2")), _RESOURCE, max_size=2)})

_WRITES: Final[tuple[SearchStrategy[Step], ...]] = (
    st.builds(Step, _WRITE, _GROUPS, _GROUP),
    st.builds(Step, _WRITE, _RESOURCES, _RESOURCE, _FLAG),
    st.builds(Step, _WRITE, _RESOURCES, _RESOURCE, _FLAG),
    st.builds(Step, st.just("POST"), _RESOURCES, _VERSION, _FLAG),
    st.builds(Step, _WRITE, _RESOURCES.map("{}/meta".format), _META),
    st.builds(Step, st.sampled_from(("POST", "PATCH")), _RESOURCES.map("{}/versions".format), _VERSION_MAP, _FLAG),
    st.builds(
        lambda method, resource, id, body: Step(method, f"{resource}/versions/{id}", body),
        _WRITE,
        _RESOURCES,
        _IDS,
        _VERSION,
    ),
)
_DELETIONS: Final[tuple[SearchStrategy[Step], ...]] = (
    st.builds(
        lambda resource, id, flags: Step("DELETE", f"{resource}/versions/{id}", None, flags), _RESOURCES, _IDS, _EPOCH
    ),
    st.builds(
        lambda resource, ids: Step("DELETE", f"{resource}/versions", {id: {} for id in ids}),
        _RESOURCES,
        st.lists(_IDS, max_size=3),
    ),
    st.builds(lambda resource, flags: Step("DELETE", resource, None, flags), _RESOURCES, _EPOCH),
    st.builds(lambda group: Step("DELETE", group), _GROUPS),
)

#: Writes whose body is the document, to types with documents.
_DOCUMENT: Final[SearchStrategy[Step]] = st.builds(
    Step,
    st.sampled_from(("PUT", "POST")),
    st.sampled_from([path for path in RESOURCES if "/files/" in path]),
    st.sampled_from((b"", b"text", b"\x00\xff", b'{"a": 1.50}')),
    _FLAG,
)

#: Writes that set an xref, or remove one; some to nothing, and one to another xref.
POINTERS: Final[SearchStrategy[Step]] = st.builds(
    lambda pointer, target: Step("PATCH", f"{pointer}/meta", {"xref": target}),
    st.sampled_from(("/dirs/a/files/p1", "/dirs/b/files/f1", "/dirs/a/files/f2")),
    st.sampled_from(("/dirs/a/files/f1", "/dirs/b/files/f1", "/dirs/b/files/none", "/dirs/a/files/p1", None)),
)


def as_request(step: Step) -> Request:
    """The HTTP request of a Step; metadata of types with documents needs `$details`."""
    single = step.path.count("/") in (4, 6) and "/files/" in step.path and not step.path.endswith("/meta")
    metadata = single and step.method != "DELETE" and not isinstance(step.body, bytes)
    flags = "&".join(f"{name}={value}" for name, value in step.query)
    path = step.path + ("$details" if metadata else "") + (f"?{flags}" if flags else "")
    return Request(step.method, path, step.body)


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest) -> Iterator[tuple[str, Callable[[], Any]]]:
    """The kind of database, and a context manager that yields the URL of an empty one."""
    if request.param == "sqlite":
        yield request.param, temporary_sqlite
        return
    with schema_of(request.getfixturevalue("postgres_server")) as url:
        yield request.param, lambda: _postgresql(url)


@contextmanager
def temporary_sqlite() -> Iterator[str]:
    """The URL of a database that is deleted at the end."""
    with tempfile.TemporaryDirectory() as directory:
        yield f"sqlite:///{directory}/annals.db"


@contextmanager
def _postgresql(url: str) -> Iterator[str]:
    delete_all_rows(url)
    yield url
