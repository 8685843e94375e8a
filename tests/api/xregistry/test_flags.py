"""Query parameters as flags."""

from __future__ import annotations

import pytest

from annals.api.registry.capabilities import Capabilities
from annals.api.xregistry.request.flags import INLINE_OF_EXPORT, Flags, parse_flags
from annals.api.xregistry.request.inline import InlineTree, parse_inline
from annals.api.xregistry.request.paths import resolve_path
from annals.domain.decisions.commands import IGNORES
from annals.domain.errors import problems
from annals.domain.model import compile_model
from tests.support.registries.in_process import MODEL

COMPILED = compile_model(MODEL)
ALL = Capabilities(
    flags=frozenset(("collections", "doc", "epoch", "ignore", "inline", "setdefaultversionid")),
    ignores=frozenset(IGNORES),
    available=dict.fromkeys(("capabilities", "entities", "export", "model", "modelsource"), True),
)


def flags(path: str, query: str = "", method: str = "GET", capabilities: Capabilities = ALL) -> Flags:
    target = resolve_path(tuple(path.split("/")[1:]) if path != "/" else (), COMPILED)
    return parse_flags(query.encode(), target, method, capabilities)


def inlined(path: str, *paths: str, capabilities: Capabilities = ALL) -> InlineTree:
    target = resolve_path(tuple(path.split("/")[1:]) if path != "/" else (), COMPILED)
    return parse_inline(paths, target, COMPILED, capabilities)


def test_what_is_unknown_or_switched_off_is_ignored() -> None:
    # HTTP-2, CAP-3: such a flag is no error, and has no effect
    assert flags("/", "nope=1&doc&filter=x") == Flags(doc=True)
    assert flags("/dirs", "collections&inline=%%%&setdefaultversionid=", capabilities=Capabilities()) == Flags()


@pytest.mark.parametrize(
    ("query", "inline"),
    [
        ("inline", ("*",)),  # FLAG-31: no value means everything
        ("inline=", ("*",)),
        ("inline=dirs.files,model", ("dirs.files", "model")),
        ("inline=dirs&inline=model", ("dirs", "model")),
        ("inline=dirs%2Efiles", ("dirs.files",)),  # TRAP-5: values are decoded after they are split
        ("collections", ("*",)),  # `collections` implies everything
    ],
)
def test_inline_lists(query: str, inline: tuple[str, ...]) -> None:
    assert flags("/", query).inline == inline


def test_an_export_has_its_own_defaults() -> None:
    # FLAG-36: document view with everything, also if the flags are off; `inline` replaces the list
    assert flags("/export") == Flags(doc=True, inline=INLINE_OF_EXPORT)
    assert flags("/export", "inline=dirs") == Flags(doc=True, inline=("dirs",))
    assert flags("/export", "x=1", capabilities=Capabilities()) == Flags(doc=True, inline=INLINE_OF_EXPORT)


def test_ignore() -> None:
    # core 5.3: no value and `*` mean all supported values; an unsupported value is an error
    assert flags("/", "ignore", "PUT").ignore == frozenset(IGNORES)
    assert flags("/", "ignore=*", "PUT").ignore == frozenset(IGNORES)
    assert flags("/", "ignore=id,epoch", "PUT").ignore == {"id", "epoch"}
    with pytest.raises(problems.BadIgnore):
        flags("/", "ignore=nope", "PUT")


@pytest.mark.parametrize(
    ("path", "query", "method", "problem"),
    [
        ("/dirs/d/files/f", "epoch=1&epoch=2", "DELETE", problems.BadFlag),  # FLAG-1: one value only
        ("/dirs", "collections", "GET", problems.BadFlag),  # only the registry and a Group take it
        ("/dirs/d/files/f", "collections", "GET", problems.BadFlag),
        ("/dirs/d/files", "setdefaultversionid=1", "POST", problems.BadFlag),  # FLAG-40: several Resources
        ("/dirs/d/files/f", "setdefaultversionid=", "PUT", problems.BadDefaultversionid),  # FLAG-40
        ("/dirs/d/files/f", "setdefaultversionid=1", "GET", problems.BadFlag),  # FLAG-40: writes only
    ],
)
def test_flags_where_they_do_not_belong(path: str, query: str, method: str, problem: type[problems.Problem]) -> None:
    with pytest.raises(problem):
        flags(path, query, method)


def test_setdefaultversionid() -> None:
    # FLAG-41: the raw value goes to the command; `request` for the one new Version of a POST
    assert flags("/dirs/d/files/f", "setdefaultversionid=request", "POST").setdefaultversionid == "request"
    assert flags("/dirs/d/files/f/meta", "setdefaultversionid=null", "PATCH").setdefaultversionid == "null"


VERSION: InlineTree = {"file": {}}
FILE: InlineTree = {**VERSION, "meta": {}, "versions": VERSION}
NOTE: InlineTree = {"meta": {}, "versions": {}}


@pytest.mark.parametrize(
    ("path", "paths", "tree"),
    [
        ("/", ["*"], {"dirs": {"files": FILE, "notes": NOTE}}),  # FLAG-31: `*` leaves the configuration out
        ("/", ["model", "*"], {"model": {}, "dirs": {"files": FILE, "notes": NOTE}}),
        ("/", ["dirs.files.versions"], {"dirs": {"files": {"versions": {}}}}),  # FLAG-31: parents, no siblings
        ("/", ["dirs.files.meta", "dirs.files.file"], {"dirs": {"files": {"meta": {}, "file": {}}}}),
        ("/dirs", ["files.*"], {"files": FILE}),  # FLAG-31: relative to the request
        ("/dirs/d/files/f", ["*"], FILE),
        ("/dirs/d/files/f/versions/1", ["*"], VERSION),
        ("/dirs/d/notes/n", ["*"], NOTE),  # FLAG-30: no document, nothing to inline
        ("/dirs/d/files/f/meta", ["*"], {}),
    ],
)
def test_inline_trees(path: str, paths: list[str], tree: InlineTree) -> None:
    assert inlined(path, *paths) == tree


@pytest.mark.parametrize(
    ("path", "inline", "problem"),
    [
        ("/", "foo*", problems.BadInline),  # FLAG-33: malformed
        ("/", "*.foo", problems.BadInline),
        ("/", ".dirs", problems.BadInline),
        ("/", "dirs..files", problems.BadInline),
        ("/", "nope", problems.InlineNoninlineable),  # C-6: well-formed, but nothing to inline
        ("/", "name", problems.InlineNoninlineable),
        ("/", "Dirs", problems.InlineNoninlineable),  # FLAG-33: exact case
        ("/", "dirs.model", problems.InlineNoninlineable),
        ("/dirs/d", "dirs", problems.InlineNoninlineable),
        ("/dirs/d/files/f", "filebase64", problems.InlineNoninlineable),  # FLAG-32
        ("/dirs/d/notes/n", "note", problems.InlineNoninlineable),
    ],
)
def test_inline_paths_that_lead_nowhere(path: str, inline: str, problem: type[problems.Problem]) -> None:
    with pytest.raises(problem):
        inlined(path, inline)


def test_what_is_not_available_cannot_be_inlined() -> None:
    # CAP-4: what is not available by its path is not available inlined
    with pytest.raises(problems.NotAvailable):
        inlined("/", "modelsource", capabilities=Capabilities(available={"model": False}))
