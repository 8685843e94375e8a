"""Constraints of a Group hold for the targets of its pointers, whichever side changes (ENT-138, ENT-156, MOD-64).

A pointer is a Resource with an `xref`. Each row of the tables has writes that are accepted, then one more write and its
outcome. The Group b1 has ordinary Resources, b2 has pointers to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annals.domain.access.roles import Caller, Role
from annals.domain.decisions.commands import Command, DeleteEntities, ReplaceModel, Restore, WriteMethod, WriteTree
from annals.domain.decisions.decide import decide
from annals.domain.decisions.world import Context
from annals.domain.errors.problems import ConstraintFailure, Problem
from tests.support.examples import examples
from tests.support.registries.memory import START, MemoryRegistry

BOX = {
    "singular": "box",
    "attributes": {"color": {"type": "string"}},
    "resources": {"pens": {"singular": "pen", "hasdocument": False, "attributes": {"ink": {"type": "string"}}}},
}
CRATE = {"singular": "crate", "ximportresources": ["/boxes/pens"]}


def model(box: Mapping[str, Any] | None = None, crate: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"groups": {"boxes": {**BOX, **(box or {})}, "crates": {**CRATE, **(crate or {})}}}


PEN, P2, OUTER = "/boxes/b1/pens/p1", "/boxes/b2/pens/p2", "/boxes/b3/pens/p3"
RED = {"constraints": {"pens.ink": {"enum": ["red"]}}}
MATCHED = {"constraints": {"pens.ink": {"equals": "color"}}}
TO_PEN = {"meta": {"xref": PEN}}
ENUM, EQUALS = {"path": "ink", "kind": "enum"}, {"path": "ink", "kind": "equals"}


def put(xid: str, tree: Mapping[str, Any]) -> Command:
    return WriteTree(xid, tree, WriteMethod.PUT)


def patch(xid: str, tree: Mapping[str, Any]) -> Command:
    return WriteTree(xid, tree, WriteMethod.PATCH)


def post(xid: str, tree: Mapping[str, Any]) -> Command:
    return WriteTree(xid, tree, WriteMethod.POST)


CONSTRAINED = [put("/boxes/b2", RED), put(PEN, {"ink": "red"}), put(P2, TO_PEN)]
UNCONSTRAINED = [put(PEN, {"ink": "blue"}), put(P2, TO_PEN)]

#: By case: the writes before, the one that violates a constraint, the Resource that the error names, and the aspect.
BREACHES: dict[str, tuple[list[Command], Command, str, dict[str, str]]] = {
    "a pointer is written": ([put("/boxes/b2", RED), put(PEN, {"ink": "blue"})], put(P2, TO_PEN), P2, ENUM),
    "a pointer is moved": (
        [*CONSTRAINED, put("/boxes/b1/pens/p9", {"ink": "blue"})],
        put(P2, {"meta": {"xref": "/boxes/b1/pens/p9"}}),
        P2,
        ENUM,
    ),
    "a pointer takes the place of a Resource": (
        [put("/boxes/b2", RED), put(PEN, {"ink": "blue"}), put(P2, {})],
        put(P2, TO_PEN),
        P2,
        ENUM,
    ),
    "the target is replaced": (CONSTRAINED, put(PEN, {"ink": "blue"}), PEN, ENUM),
    "the target is patched": (CONSTRAINED, patch(PEN, {"ink": "blue"}), PEN, ENUM),
    "the target gets a Version": (CONSTRAINED, post(PEN, {"ink": "blue"}), PEN, ENUM),
    "the target gets a Version that is not the default": (
        [*CONSTRAINED, patch(f"{PEN}/meta", {"defaultversionid": "1"})],
        put(f"{PEN}/versions/v2", {"ink": "blue"}),
        PEN,
        ENUM,
    ),
    "a Version of the target is patched": (CONSTRAINED, patch(f"{PEN}/versions/1", {"ink": "blue"}), PEN, ENUM),
    "the target loses the value": (
        [put("/boxes/b2", {"color": "red", **MATCHED}), put(PEN, {"ink": "red"}), put(P2, TO_PEN)],
        patch(PEN, {"ink": None}),
        PEN,
        EQUALS,
    ),
    "the target comes later": ([put("/boxes/b2", RED), put(P2, TO_PEN)], put(PEN, {"ink": "blue"}), PEN, ENUM),
    "the target comes later, through its Versions": (
        [put("/boxes/b2", RED), put(P2, TO_PEN)],
        post(f"{PEN}/versions", {"v1": {"ink": "blue"}}),
        PEN,
        ENUM,
    ),
    "the target comes later, through its meta": (
        [put("/boxes/b2", {"color": "red", **MATCHED}), put(P2, TO_PEN)],
        put(f"{PEN}/meta", {}),
        PEN,
        EQUALS,
    ),
    "the target comes back": ([*CONSTRAINED, DeleteEntities(PEN)], put(PEN, {"ink": "blue"}), PEN, ENUM),
    "the target comes in the same request, before": (
        [],
        put("/", {"boxes": {"b1": {"pens": {"p1": {"ink": "blue"}}}, "b2": {**RED, "pens": {"p2": TO_PEN}}}}),
        P2,
        ENUM,
    ),
    "the target comes in the same request, after": (
        [],
        put("/", {"boxes": {"b2": {**RED, "pens": {"p2": TO_PEN}}, "b1": {"pens": {"p1": {"ink": "blue"}}}}}),
        P2,
        ENUM,
    ),
    "the target is replaced in the same request": (
        CONSTRAINED[:2],
        patch("/", {"boxes": {"b2": {"pens": {"p2": TO_PEN}}, "b1": {"pens": {"p1": {"ink": "blue"}}}}}),
        P2,
        ENUM,
    ),
    "the target gets a Version in the same request": (
        CONSTRAINED[:2],
        patch(
            "/",
            {"boxes": {"b2": {"pens": {"p2": TO_PEN}}, "b1": {"pens": {"p1": {"versions": {"v2": {"ink": "blue"}}}}}}},
        ),
        P2,
        ENUM,
    ),
    "the target was a pointer": (
        [put("/boxes/b2", RED), put(P2, TO_PEN), put(PEN, {"meta": {"xref": OUTER}})],
        put(PEN, {"ink": "blue", "meta": {}}),
        PEN,
        ENUM,
    ),
    "the target was a pointer until this request": (
        [put("/boxes/b2", RED), put(PEN, {"meta": {"xref": OUTER}})],
        patch(
            "/",
            {
                "boxes": {
                    "b2": {"pens": {"p2": TO_PEN}},
                    "b1": {"pens": {"p1": {"ink": "blue", "meta": {"xref": None}}}},
                }
            },
        ),
        P2,
        ENUM,
    ),
    "the Group of the pointer gets a constraint": (UNCONSTRAINED, patch("/boxes/b2", RED), P2, ENUM),
    "the Group of the pointer narrows one": (
        [put("/boxes/b2", {"constraints": {"pens.ink": {"enum": ["red", "blue"]}}}), *UNCONSTRAINED],
        patch("/boxes/b2", RED),
        P2,
        ENUM,
    ),
    "the Group of the pointer is replaced": (UNCONSTRAINED, put("/boxes/b2", RED), P2, ENUM),
    "the Group of the pointer gets the value that equals names": (
        [put("/boxes/b2", MATCHED), *UNCONSTRAINED],
        patch("/boxes/b2", {"color": "red"}),
        P2,
        EQUALS,
    ),
    "the Group of the pointer changes the value that equals names": (
        [put("/boxes/b2", {"color": "blue", **MATCHED}), *UNCONSTRAINED],
        patch("/boxes/b2", {"color": "red"}),
        P2,
        EQUALS,
    ),
    "an older Version breaks what the Group gets": (
        [put(PEN, {"versions": {"v1": {"ink": "blue"}, "v2": {"ink": "red"}}}), put(P2, TO_PEN)],
        patch("/boxes/b2", RED),
        P2,
        ENUM,
    ),
    "the Group type of the pointer gets a constraint": (
        [put(PEN, {"ink": "blue"}), put("/crates/c1/pens/p2", TO_PEN)],
        ReplaceModel(model(crate=RED)),
        "/crates/c1/pens/p2",
        ENUM,
    ),
    "the model gives the pointer's Group the value that equals names": (
        [put("/boxes/b2", MATCHED), *UNCONSTRAINED],
        ReplaceModel(model({"attributes": {"color": {"type": "string", "required": True, "default": "red"}}})),
        P2,
        EQUALS,
    ),
    "the model gives a Group of its own the value that equals names": (
        [put("/boxes/b1", MATCHED), put(PEN, {"ink": "blue"})],
        ReplaceModel(model({"attributes": {"color": {"type": "string", "required": True, "default": "red"}}})),
        PEN,
        EQUALS,
    ),
    "the past of the target is restored": (
        [put(PEN, {"ink": "blue"}), put(PEN, {"ink": "red"}), put("/boxes/b2", RED), put(P2, TO_PEN)],
        Restore(PEN, 1),
        PEN,
        ENUM,
    ),
    "the past of the pointer is restored": (
        [*UNCONSTRAINED, put(P2, {"ink": "red", "meta": {}}), put("/boxes/b2", RED)],
        Restore(P2, 2),
        P2,
        ENUM,
    ),
}

#: By case: the writes before, and one that violates nothing.
ACCEPTED: dict[str, tuple[list[Command], Command]] = {
    "the target changes within the constraint": (CONSTRAINED, put(PEN, {"ink": "red"})),
    "the pointer goes with the change of its target": (
        CONSTRAINED,
        patch(
            "/", {"boxes": {"b2": {"pens": {"p2": {"meta": {"xref": None}}}}, "b1": {"pens": {"p1": {"ink": "blue"}}}}}
        ),
    ),
    "the pointer moves away with the change of its target": (
        CONSTRAINED,
        patch(
            "/", {"boxes": {"b1": {"pens": {"p1": {"ink": "blue"}}}, "b2": {"pens": {"p2": {"meta": {"xref": OUTER}}}}}}
        ),
    ),
    "the constraint goes with the change of the target": (
        CONSTRAINED,
        patch("/", {"boxes": {"b2": {"constraints": None}, "b1": {"pens": {"p1": {"ink": "blue"}}}}}),
    ),
    "the pointer has gone": ([*CONSTRAINED, DeleteEntities(P2)], put(PEN, {"ink": "blue"})),
    "the target of a pointer at a pointer shows nothing": (
        [put("/boxes/b2", RED), put(OUTER, {"ink": "blue"}), put(PEN, {"meta": {"xref": OUTER}})],
        put(P2, TO_PEN),
    ),
    "defaults are not applied through a pointer": (
        [put("/boxes/b2", {"constraints": {"pens.ink": {"default": "red"}}}), put(P2, TO_PEN)],
        put(PEN, {}),
    ),
}


def registry_after(commands: list[Command]) -> tuple[MemoryRegistry, list[int]]:
    """Returns a registry after some writes, and the end of its log before the first write and after each of them."""
    made = MemoryRegistry(model())
    ends = [len(made.log)]
    for command in commands:
        made.do(command)
        ends.append(len(made.log))
    return made, ends


def with_position(command: Command, ends: list[int]) -> Command:
    """Replaces the position of a Restore, which is a number of writes, by the end of the log after these writes."""
    return replace(command, position=ends[command.position]) if isinstance(command, Restore) else command


@pytest.mark.parametrize(("given", "when", "subject", "arguments"), BREACHES.values(), ids=list(BREACHES))
def test_no_request_makes_a_pointer_show_what_its_group_forbids(
    given: list[Command], when: Command, subject: str, arguments: dict[str, str]
) -> None:
    # ENT-138, ENT-156, MOD-64: refused, whether pointer, target or constraint changes; nothing is recorded
    made, ends = registry_after(given)
    with pytest.raises(ConstraintFailure) as failure:
        made.do(with_position(when, ends))
    assert (failure.value.subject, failure.value.arguments) == (subject, arguments)
    assert len(made.log) == ends[-1]


@pytest.mark.parametrize(("given", "when"), ACCEPTED.values(), ids=list(ACCEPTED))
def test_only_what_is_shown_in_the_end_counts(given: list[Command], when: Command) -> None:
    # ENT-20, ENT-138: the state after the whole request decides
    made, _ = registry_after(given)
    made.do(when)
    assert breaches(made) == []


def test_the_error_detail_names_only_readable_groups() -> None:
    # ENT-138: the error is about the target, so its detail names the Group of the pointer, if the caller may read it
    made, _ = registry_after(CONSTRAINED)
    group_detail = f'"{P2}" shows it in "/boxes/b2", whose constraint it is'
    for caller, detail in (
        (Caller("all", Role.WRITER), group_detail),
        (Caller("target", groups={"/boxes/b1": Role.WRITER}), None),
    ):
        with pytest.raises(ConstraintFailure) as failure:
            decide(put(PEN, {"ink": "blue"}), made.world, Context(START, "c", caller))
        assert failure.value.detail == detail


def breaches(made: MemoryRegistry) -> list[str]:
    """Returns the Resources that violate the constraints of their Group, themselves or through their target."""
    found = []
    for group in (*made.world.entities_of_type("boxes"), *made.world.entities_of_type("crates")):
        bounds = (group.attributes.get("constraints") or {}).get("pens.ink", {})
        for pen in made.world.members(f"{group.xid}/pens"):
            target = pen.attributes["meta"].get("xref", pen.xid)
            inks = [version.attributes.get("ink") for version in made.world.members(f"{target}/versions")]
            if any(_breaks(ink, bounds, group.attributes) for ink in inks):
                found.append(pen.xid)
    return found


def _breaks(ink: str | None, bounds: Mapping[str, Any], group: Mapping[str, Any]) -> bool:
    wanted = group.get(bounds.get("equals", ""))
    return (ink is not None and ink not in bounds.get("enum", [ink])) or (wanted is not None and ink != wanted)


GROUPS = ("b1", "b2")
PENS = tuple(f"/boxes/{group}/pens/p" for group in GROUPS)
INKS = st.sampled_from(["red", "blue"])
GROUP = st.fixed_dictionaries({}, optional={"color": INKS | st.none(), "constraints": st.sampled_from([None, {}])}) | (
    st.sampled_from([RED, MATCHED])
)
VERSIONS = st.dictionaries(st.sampled_from(["v1", "v2"]), st.fixed_dictionaries({"ink": INKS}), min_size=1)
POINTERS = st.sampled_from(PENS).map(lambda xid: {"meta": {"xref": xid}})
OWN = st.fixed_dictionaries({"meta": st.just({"xref": None})}, optional={"ink": INKS, "versions": VERSIONS})
GROUPS_WITH_PENS = st.builds(lambda group, pen: {**group, "pens": {"p": pen}}, GROUP, POINTERS | OWN)
COMMANDS = st.one_of(
    st.builds(patch, st.sampled_from(PENS), POINTERS | OWN),
    st.builds(patch, st.sampled_from(GROUPS).map("/boxes/{}".format), GROUP),
    st.builds(patch, st.just("/boxes"), st.dictionaries(st.sampled_from(GROUPS), GROUPS_WITH_PENS)),
    st.builds(post, st.sampled_from(PENS).map("{}/versions".format), VERSIONS),
    st.builds(DeleteEntities, st.sampled_from(PENS)),
)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(COMMANDS, min_size=4, max_size=12))
def test_whatever_is_accepted_breaks_no_constraint(commands: list[Command]) -> None:
    # ENT-138, ENT-156, MOD-64: for any history
    made = MemoryRegistry(model())
    for command in commands:
        with suppress(Problem):
            made.do(command)
        assert breaches(made) == []
