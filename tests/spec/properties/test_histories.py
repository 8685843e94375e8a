"""Invariants after every step of any history, in memory (P-1 to P-4, P-12, P-14), and of header values (P-13).

The oracles evaluate the rules from the attributes of entities, and share no code with the product.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from annals.commands.store.mapper import EventMapper
from annals.domain.decisions.world import Decision
from annals.domain.errors.problems import Problem
from annals.domain.registry.entities import Entity
from annals.domain.registry.events import EntityDeleted
from annals.domain.values import xid as xids
from annals.domain.values.header_values import decode, encode
from tests.support.examples import examples
from tests.support.histories import TEXTS, VERSIONS, Step, command, histories
from tests.support.registries.memory import MemoryRegistry
from tests.support.registries.memory_world import MemoryWorld

FEW = settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))


@dataclass(frozen=True)
class Moment:
    """A step of a history, and the registry before and after it. decision: None if the step was refused."""

    step: Step
    before: dict[str, Entity]
    decision: Decision | None
    registry: MemoryRegistry

    @property
    def after(self) -> dict[str, Entity]:
        return alive(self.registry)


def every_resource_points_at_its_default(moment: Moment) -> None:
    # P-1: a Resource has at least one Version, and exactly one default, which meta names
    for resource, versions in resources(moment.registry):
        attributes = resource.attributes
        assert versions, resource.xid
        assert attributes["versionscount"] == len(versions)
        assert [id for id, version in versions.items() if version.attributes["isdefault"]] == [attributes["versionid"]]
        assert attributes["meta"]["defaultversionid"] == attributes["versionid"]
        default = versions[attributes["versionid"]].attributes
        assert {name: value for name, value in attributes.items() if name not in ("meta", "versionscount")} == default


def ancestors_form_a_forest(moment: Moment) -> None:
    # P-2: an ancestor is a sibling or the Version itself, there is no cycle, and one root if the type requires it
    for resource, versions in resources(moment.registry):
        ancestors = {id: version.attributes["ancestorid"] for id, version in versions.items()}
        assert set(ancestors.values()) <= set(ancestors), resource.xid
        for id in ancestors:
            assert ends_in_a_root(id, ancestors), resource.xid
        type = resource_type(moment.registry, resource)
        if type.singleversionroot:
            assert sum(id == ancestor for id, ancestor in ancestors.items()) == 1
        if type.versionmode != "manual":
            order = in_order(type.versionmode, versions)
            assert [ancestors[id] for id in order] == [order[0], *order[:-1]]


def a_default_that_is_not_sticky_is_the_newest(moment: Moment) -> None:
    # P-3: a default that is not sticky is the newest Version in the version mode of the type
    for resource, versions in resources(moment.registry):
        if not resource.attributes["meta"]["defaultversionsticky"]:
            mode = resource_type(moment.registry, resource).versionmode
            assert resource.attributes["versionid"] == in_order(mode, versions)[-1], resource.xid


def no_more_versions_than_the_type_allows(moment: Moment) -> None:
    # ENT-104, ENT-105: maxversions holds after every write and every change of the model
    for resource, versions in resources(moment.registry):
        limit = resource_type(moment.registry, resource).maxversions
        assert not limit or len(versions) <= limit, resource.xid
        assert limit != 1 or not resource.attributes["meta"]["defaultversionsticky"]


def epochs_only_grow(moment: Moment) -> None:
    # P-4: the epoch of an existing entity never decreases, and each write to it increases it
    before, after = moment.before, moment.after
    for key in before.keys() & after.keys():
        assert after[key].epoch >= before[key].epoch, key
    for xid in moment.decision.processed if moment.decision else ():
        key = written_stream(xid, before)
        if key in before and key in after:
            assert after[key].epoch > before[key].epoch, xid


def a_refusal_leaves_no_trace(moment: Moment) -> None:
    # P-4, P-15/40: a refused request changes nothing
    if moment.decision is None:
        assert moment.after == moment.before


def what_changed_has_one_event(moment: Moment) -> None:
    # EV-70, EV-77, EV-34: one event for each entity that differs, in tree order, revisions without gaps, one id for all
    events = moment.decision.events if moment.decision else ()
    assert [event.xid for event in events] == sorted({event.xid for event in events}, key=xids.event_order)
    assert {event.xregcorrelationid for event in events} <= {f"c{moment.registry.interactions}"}
    before, after = moment.before, moment.after
    differing = {
        key
        for key in before.keys() | after.keys()
        if key not in before or key not in after or image(before[key]) != image(after[key])
    }
    assert differing <= {event.stream for event in events}
    for event in events:
        assert event.revision == sum(other.stream == event.stream for other in moment.registry.log)
        assert isinstance(event, EntityDeleted) == (event.stream not in after)


def counts_are_sizes(moment: Moment) -> None:
    # P-5: every count is the number of existing entities
    after = moment.after.values()
    for entity in after:
        for name, value in entity.attributes.items():
            if name.endswith("scount") and entity.type not in (xids.MODEL, xids.CAPABILITIES):
                collection = f"{entity.xid.rstrip('/')}/{name.removesuffix('count')}"
                members = [one for one in after if one.xid.rpartition("/")[0] == collection]
                assert value == len(members), f"{collection}: {value}"


def stored_entities_satisfy_the_model(moment: Moment) -> None:
    # P-12: after a model change an empty PATCH, which validates the whole entity, succeeds for every entity
    if moment.decision is None or moment.step.path != "/modelsource":
        return
    for entity in moment.after.values():
        if entity.xid in (xids.MODEL, xids.CAPABILITIES):
            continue
        stage = definition(moment.registry, entity).get("stage", {})
        if stage.get("required"):
            assert entity.attributes["stage"] in stage["enum"]
        touch = MemoryRegistry()
        touch.world, touch.interactions = MemoryWorld(moment.registry.log), moment.registry.interactions
        touch.patch(entity.xid, {})


INVARIANTS: list[Callable[[Moment], None]] = [
    every_resource_points_at_its_default,
    ancestors_form_a_forest,
    a_default_that_is_not_sticky_is_the_newest,
    no_more_versions_than_the_type_allows,
    epochs_only_grow,
    a_refusal_leaves_no_trace,
    what_changed_has_one_event,
    counts_are_sizes,
    stored_entities_satisfy_the_model,
]


@settings(FEW, max_examples=examples(120))
@given(histories())
def test_what_holds_after_every_step(history: list[Step]) -> None:
    for moment in moments(history):
        for holds in INVARIANTS:
            holds(moment)


@FEW
@given(histories(documents=True))
def test_the_log_alone_gives_the_registry_again(history: list[Step]) -> None:
    # P-14: events that are serialized, read and folded give the same entities, with the same order of members
    registry = MemoryRegistry()
    for _ in run(registry, history):
        pass
    mapper = EventMapper()
    replayed = [mapper.to_domain_event(mapper.to_stored_event(event)) for event in registry.log]
    refolded = MemoryWorld(replayed)
    assert [repr(entity) for entity in refolded.entities()] == [repr(entity) for entity in registry.world.entities()]
    for name in {*alive(registry), *(event.stream for event in registry.log)}:
        assert refolded.revision(name) == registry.world.revision(name)


@FEW
@given(TEXTS)
def test_a_header_value_comes_back_as_it_went(value: str) -> None:
    # P-13, HTTP-60, HTTP-61: decoding an encoded header value gives the value, and the encoded form is plain ASCII
    encoded = encode(value)
    assert decode(encoded) == value
    assert re.fullmatch(r"(?:[!#$&-~]|%[0-9A-F]{2})*", encoded)


@FEW
@given(st.text(alphabet=st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters='"%')))
def test_printable_ascii_is_not_encoded(value: str) -> None:
    # HTTP-60: characters that need no encoding are not encoded
    assert encode(value) == value


def moments(history: list[Step]) -> Iterator[Moment]:
    """Yields each step of a history, with the registry in its state after that step."""
    yield from run(MemoryRegistry(), history)


def run(registry: MemoryRegistry, history: list[Step]) -> Iterator[Moment]:
    for step in history:
        before = alive(registry)
        try:
            decision = registry.do(command(step))
        except Problem:
            decision = None
        yield Moment(step, before, decision, registry)


def alive(registry: MemoryRegistry) -> dict[str, Entity]:
    """Every existing entity by its stream."""
    return {xids.stream(entity.xid): entity for entity in registry.world.entities()}


def image(entity: Entity) -> tuple[Any, ...]:
    return entity.xid, entity.epoch, entity.attributes, entity.private


def resources(registry: MemoryRegistry) -> Iterator[tuple[Entity, dict[str, Entity]]]:
    for entity in registry.world.entities():
        if entity.type.count(".") == 1:
            yield entity, registry.versions(entity.xid)


def resource_type(registry: MemoryRegistry, resource: Entity) -> Any:
    group, plural = resource.type.split(".")
    return registry.world.model.groups[group].resources[plural]


def definition(registry: MemoryRegistry, entity: Entity) -> dict[str, Any]:
    """The attribute definitions of a Version; none for other entities."""
    if entity.type.count(".") != 2:
        return {}
    group, plural, _ = entity.type.split(".")
    found = registry.world.model.full["groups"][group]["resources"][plural]["attributes"]
    assert isinstance(found, dict)
    return found


def written_stream(xid: str, before: dict[str, Entity]) -> str:
    """The stream of the entity whose epoch a write to an xid increases: for a Resource, its default Version."""
    key = xids.stream(xid)
    if key.endswith("/meta"):
        return key.removesuffix("/meta")
    if xids.type_of(xid).count(".") == 1 and key in before:
        return f"{key}/versions/{before[key].attributes['versionid'].lower()}"
    return key


def ends_in_a_root(id: str, ancestors: dict[str, str]) -> bool:
    for _ in ancestors:
        if ancestors[id] == id:
            return True
        id = ancestors[id]
    return False


def in_order(mode: str, versions: dict[str, Entity]) -> list[str]:
    """Versionids from the oldest to the newest; in `manual` mode only those of Versions without descendants."""
    attributes = {id: version.attributes for id, version in versions.items()}
    if mode == "semver":
        # Ids from before a change to this mode may be no semantic versions; those come first.
        return sorted(versions, key=lambda id: (VERSIONS.index(id) if id in VERSIONS else -1, id.lower()))
    if mode == "modifiedat":
        return sorted(versions, key=lambda id: (instant(versions[id].private["ordered"]), id.lower()))
    named = {
        version_attributes["ancestorid"]
        for id, version_attributes in attributes.items()
        if version_attributes["ancestorid"] != id
    }
    leaves = [id for id in versions if mode != "manual" or id not in named]
    return sorted(leaves, key=lambda id: (instant(attributes[id]["createdat"]), id.lower()))


def instant(text: str) -> datetime:
    return datetime.fromisoformat(text)
