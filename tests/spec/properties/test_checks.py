"""After every step of any history, the stored results of format and compatibility checks equal those of a full check.

The oracle checks all stored Versions, without knowing what changed. It shares with the product only the checks of
single documents. A twin registry without checks shows whether a refusal was right: it accepts the same step, and the
oracle has to find an error in the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from annals.domain import formats
from annals.domain.decisions.capabilities import INITIAL
from annals.domain.decisions.checks import document_checks
from annals.domain.decisions.checks.document_checks import CompatibilityCheck, DocumentCheck, FormatCheck
from annals.domain.decisions.commands import (
    Command,
    DeleteEntities,
    ReplaceModel,
    Restore,
    WriteCapabilities,
    WriteMethod,
    WriteTree,
)
from annals.domain.errors.problems import Problem
from annals.domain.registry.entities import Entity
from tests.support.examples import examples
from tests.support.registries.memory import MemoryRegistry
from tests.support.registries.memory_world import MemoryWorld

FEW = settings(max_examples=examples(200), deadline=None, suppress_health_check=list(HealthCheck))
MODES: Final = ("manual", "createdat", "modifiedat", "semver")
VERSIONS: Final = ("1.0.0", "1.1.0", "2.0.0", "3.0.0")
RESOURCES: Final = ("/dirs/a/files/f", "/dirs/a/files/f", "/dirs/a/files/g", "/dirs/b/files/f")
#: Types of documents. Each can be read as some of the following ones, and the last one is invalid.
DOCUMENTS: Final = ("int", "long", "float", "string", "bytes", "int", "long", "float", "string", "nothing")
FORMATS: Final = (*["Avro/1.11"] * 8, "AVRO/1.11", "Avro/1.9", "JsonSchema/draft-07", "Own/1")
RULES: Final = (None, "backward", "Backward_Transitive", "forward", "forward_transitive", "full", "full_transitive")
REFUSALS: Final = (
    *("format_violation", "compatibility_violation", "format_unknown", "format_external", "compatibility_unknown"),
    "model_compliance_error",
)


@dataclass(frozen=True, slots=True)
class Type:
    """The model of files. checked: False for the twin registry, which checks nothing."""

    versionmode: str
    maxversions: int
    validateformat: bool
    validatecompatibility: bool
    strictvalidation: bool
    matchversions: bool
    checked: bool = True

    def source(self) -> dict[str, Any]:
        flags = {
            "validateformat": self.validateformat,
            "validatecompatibility": self.validateformat and self.validatecompatibility,
            "strictvalidation": self.strictvalidation,
        }
        files = {
            "singular": "file",
            "versionmode": self.versionmode,
            "maxversions": self.maxversions,
            "singleversionroot": self.versionmode != "manual",
            "attributes": {"format": {"type": "string", "matchversions": self.matchversions}},
            **(flags if self.checked else {}),
        }
        return {"groups": {"dirs": {"singular": "dir", "resources": {"files": files}}}}


def _some(names: Mapping[str, SearchStrategy[Any]], **always: SearchStrategy[Any]) -> SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(always, optional=dict(names))


_RARELY = st.sampled_from((False, False, False, True))
_MOSTLY = st.sampled_from((True, True, True, False))
_TYPES = st.builds(Type, st.sampled_from(MODES), st.sampled_from((0, 0, 2, 3)), _MOSTLY, _MOSTLY, _RARELY, _MOSTLY)
_IDS = st.sampled_from(VERSIONS)
_SCHEMAS = st.sampled_from(DOCUMENTS).map(lambda name: {"type": name})
_MORE = {"ancestorid": _IDS, "createdat": st.sampled_from(("2020-01-01T00:00:00Z", "2040-01-01T00:00:00Z"))}
_VERSION = st.one_of(
    _some({}, file=_SCHEMAS, format=st.just("Avro/1.11")),
    _some(_MORE, file=_SCHEMAS, format=st.sampled_from(FORMATS)),
    _some(_MORE | {"format": st.sampled_from(FORMATS)}, file=_SCHEMAS),
    _some(_MORE, fileurl=st.just("http://127.0.0.1:1/"), format=st.just("Avro/1.11")),
    _some(_MORE | {"format": st.sampled_from((*FORMATS, None)), "file": st.none()}),
)
_VERSION_MAP = st.dictionaries(_IDS, _VERSION, min_size=1, max_size=3)
_META = _some({"defaultversionid": _IDS}, compatibility=st.sampled_from(RULES))
_RESOURCE = st.builds(
    lambda version, nested: version | nested, _VERSION, _some({"versions": _VERSION_MAP, "meta": _META})
)
_POINTER = st.sampled_from((*RESOURCES, None)).map(lambda xid: {"xref": xid})
_WRITE = st.sampled_from((WriteMethod.PUT, WriteMethod.PATCH))
_SWITCH = st.builds(
    WriteCapabilities,
    st.sampled_from(
        (
            *[{"formats": ["*"], "compatibilities": INITIAL["compatibilities"]}] * 3,
            {"formats": ["Avro/*"], "compatibilities": {"Avro/*": ["backward", "full", "backward_transitive"]}},
            {"formats": [], "compatibilities": {}},
        )
    ),
    st.just(WriteMethod.PATCH),
)

_VERSION_WRITE = st.builds(
    lambda resource, id, tree, method: WriteTree(f"{resource}/versions/{id}", tree, method),
    *(st.sampled_from(RESOURCES), _IDS, _VERSION, _WRITE),
)
#: A write that changes only the document of a Version.
_EDIT = st.builds(
    lambda id, name: WriteTree(f"{RESOURCES[0]}/versions/{id}", {"file": {"type": name}}, WriteMethod.PATCH),
    st.sampled_from(VERSIONS[:2]),
    st.sampled_from(DOCUMENTS[:3]),
)
_STEPS: Final[tuple[SearchStrategy[Any], ...]] = (
    *[_VERSION_WRITE] * 3,
    *[_EDIT] * 3,
    st.builds(WriteTree, st.sampled_from(RESOURCES), _RESOURCE, _WRITE),
    st.builds(
        WriteTree,
        st.sampled_from(RESOURCES).map("{}/versions".format),
        _VERSION_MAP,
        st.sampled_from((WriteMethod.POST, WriteMethod.PATCH)),
    ),
    *[st.builds(WriteTree, st.sampled_from(RESOURCES).map("{}/meta".format), _META, st.just(WriteMethod.PATCH))] * 2,
    st.builds(WriteTree, st.sampled_from(RESOURCES).map("{}/meta".format), _POINTER, st.just(WriteMethod.PATCH)),
    *[st.builds(lambda resource, id: DeleteEntities(f"{resource}/versions/{id}"), st.sampled_from(RESOURCES), _IDS)]
    * 2,
    st.builds(DeleteEntities, st.sampled_from(RESOURCES)),
    _SWITCH,
    _TYPES,
)
_SCHEMA = st.sampled_from(DOCUMENTS[:3]).map(lambda name: {"file": {"type": name}, "format": "Avro/1.11"})
#: A write of several Versions with a compatibility, which later steps change.
_LINE = st.builds(
    lambda versions, rule: WriteTree(
        RESOURCES[0],
        {"versions": dict(zip(VERSIONS, versions, strict=False)), "meta": {"compatibility": rule}},
        WriteMethod.PUT,
    ),
    st.lists(_SCHEMA, min_size=2, max_size=4),
    st.sampled_from(RULES),
)
#: Path of a Restore, and the number of steps that it goes back. A position would differ in the twin.
_RESTORES = st.tuples(st.sampled_from(("/", "/dirs/a", RESOURCES[0], f"{RESOURCES[0]}/versions")), st.integers(1, 5))


def _histories(*steps: SearchStrategy[Any]) -> SearchStrategy[list[Any]]:
    rest = st.lists(st.one_of(*steps), min_size=4, max_size=16)
    return st.builds(lambda switch, line, rest: [switch, line, *rest], _SWITCH, _LINE, rest)


@FEW
@given(_TYPES, _histories(*_STEPS))
def test_stored_verdicts_equal_a_full_check(type: Type, steps: list[Command | Type]) -> None:
    # ENT-110 to 113, 115, SC-30 to 35, CAP-15, V-14: and every refused step would have broken a rule
    registry, twin = MemoryRegistry(type.source()), MemoryRegistry(replace(type, checked=False).source())
    for step in steps:
        after = step if isinstance(step, Type) else type
        try:
            registry.do(_command(step))
        except Problem as problem:
            if problem.name in REFUSALS:
                _check_refusal(twin, after, step)
            continue
        type = after
        twin.do(_command(replace(step, checked=False) if isinstance(step, Type) else step))
        _check(registry, type)


@FEW
@given(_TYPES, _histories(*_STEPS, _RESTORES))
def test_restored_versions_are_checked_too(type: Type, steps: list[Command | Type | tuple[str, int]]) -> None:
    # ENT-113, FLAG-81: also after a restore, and with a model and capabilities that have changed since
    registry = MemoryRegistry(type.source())
    ends = [len(registry.log)]
    for step in steps:
        command = Restore(step[0], ends[-step[1] :][0]) if isinstance(step, tuple) else _command(step)
        try:
            registry.do(command)
        except Problem:
            continue
        type = step if isinstance(step, Type) else type
        ends.append(len(registry.log))
        _check(registry, type)


def _command(step: Command | Type) -> Command:
    return ReplaceModel(step.source()) if isinstance(step, Type) else step


def _check_refusal(twin: MemoryRegistry, type: Type, step: Command | Type) -> None:
    """Checks that a step refused for its documents would have broken a rule, by executing it without checks."""
    other = MemoryRegistry()
    other.world = MemoryWorld()
    other.world.extend(twin.log, {sha256: twin.world.document(sha256) for sha256 in _documents(twin)})
    other.interactions = twin.interactions
    try:
        other.do(_command(replace(step, checked=False) if isinstance(step, Type) else step))
    except Problem:
        return  # it breaks another rule too
    assert any(flaw for _, _, flaw in _full_check(other, type)), "nothing was wrong with it"


def _documents(registry: MemoryRegistry) -> set[str]:
    return {str(event.private["document"]) for event in registry.log if event.private.get("document")}


def _check(registry: MemoryRegistry, type: Type) -> None:
    for version, expected, flaw in _full_check(registry, type):
        assert flaw is None, f"{version.xid}: {flaw}"
        assert _stored_results(version) == expected, version.xid
    for entity in registry.world.entities():
        if entity.type == "dirs.files" and "xref" not in entity.attributes["meta"]:
            default = registry.get(f"{entity.xid}/versions/{entity.attributes['versionid']}")
            assert _stored_results(entity) == _stored_results(default), entity.xid


def _stored_results(version: Entity) -> dict[str, bool]:
    """The results of checks that a Version has. Each check that was not made has a reason, and no other (ENT-111)."""
    names = ("formatvalidated", "compatibilityvalidated")
    for name in names:
        assert bool(version.attributes.get(f"{name}reason")) == (version.attributes.get(name) is False)
    return {name: version.attributes[name] for name in names if name in version.attributes}


def _full_check(registry: MemoryRegistry, type: Type) -> Iterator[tuple[Entity, dict[str, bool], str | None]]:
    """Every Version, the results that it should have, and the reason why it should have been refused, if any."""
    oracle = _Oracle(registry, type)
    for entity in registry.world.entities():
        if entity.type == "dirs.files" and "xref" not in entity.attributes["meta"]:
            versions = {version.id: version for version in registry.world.members(f"{entity.xid}/versions")}
            rule = entity.attributes["meta"].get("compatibility")
            for version in versions.values():
                yield version, *oracle.expected(version, versions, rule.lower() if rule else None)


class _Oracle:
    def __init__(self, registry: MemoryRegistry, type: Type) -> None:
        self._registry = registry
        self._type = type
        self._capabilities = registry.get("/capabilities").attributes

    def expected(
        self, version: Entity, versions: Mapping[str, Entity], rule: str | None
    ) -> tuple[dict[str, bool], str | None]:
        """The results that a Version should have, and the reason why it should have been refused, if any."""
        if not self._type.validateformat or "format" not in version.attributes:
            return {}, None
        checked = self._can_check(version)
        results, unchecked = {"formatvalidated": checked}, not checked
        if checked and _check_result(self._registry, _document(version)):
            return results, "it is none of its format"
        if self._type.validatecompatibility and rule is not None:
            ancestors = list(_ancestors(version, versions, whole=rule.endswith("_transitive")))
            compared = checked and self._has(version, rule) and all(map(self._can_check, ancestors))
            results["compatibilityvalidated"], unchecked = compared, unchecked or not compared
            if compared and any(
                _check_result(self._registry, one) for one in _compatibility_checks(version, ancestors, rule)
            ):
                return results, "it is not compatible"
        return results, "it was not checked" if unchecked and self._type.strictvalidation else None

    def _can_check(self, version: Entity) -> bool:
        name = str(version.attributes.get("format", ""))
        on = any(formats.matches_format(name, pattern) for pattern in self._capabilities["formats"])
        return on and formats.find_format(name) is not None and "fileurl" not in version.attributes

    def _has(self, version: Entity, rule: str) -> bool:
        name, offered = str(version.attributes["format"]), self._capabilities["compatibilities"].items()
        return any(rule in rules and formats.matches_format(name, pattern) for pattern, rules in offered)


def _ancestors(version: Entity, versions: Mapping[str, Entity], *, whole: bool) -> Iterator[Entity]:
    at = version
    while at.attributes["ancestorid"] != at.id:
        at = versions[at.attributes["ancestorid"]]
        yield at
        if not whole:
            return


def _compatibility_checks(version: Entity, ancestors: list[Entity], rule: str) -> Iterator[CompatibilityCheck]:
    for other in map(_document, ancestors):
        if rule.startswith(("backward", "full")):
            yield CompatibilityCheck(_document(version), other)
        if rule.startswith(("forward", "full")):
            yield CompatibilityCheck(other, _document(version), newer="writer")


def _document(version: Entity) -> FormatCheck:
    return FormatCheck(version.attributes["format"].lower(), version.document)


_RESULTS: dict[DocumentCheck, document_checks.CheckResult] = {}


def _check_result(registry: MemoryRegistry, document_check: DocumentCheck) -> document_checks.CheckResult:
    if document_check not in _RESULTS:
        world = registry.world
        _RESULTS[document_check] = document_checks.run_check(
            document_check, lambda one: document_checks.parse_document(one, world.document(one.sha256 or ""))
        )
    return _RESULTS[document_check]
