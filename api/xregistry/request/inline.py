"""Parses `inline` into a tree that is checked against the model.

Spec: core 1.0-rc4, "Inline Flag".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from annals.api.registry.capabilities import Capabilities
from annals.api.xregistry.request.paths import PathKind, RequestTarget
from annals.domain.errors import problems
from annals.domain.model import GroupType, Model, ResourceType

#: The names of inlined parts, each with the parts inlined below it.
InlineTree = dict[str, "InlineTree"]
#: The parts that can be inlined, in the same form; None for a part that is not a collection and has nothing below it.
InlineableTree = dict[str, "InlineableTree | None"]

NO_INLINE: Final[InlineTree] = {}
#: Parts of the registry's configuration, which `*` leaves out.
CONFIGURATION_NAMES: Final = ("capabilities", "model", "modelsource")

_STEP: Final = re.compile(r"[a-z_][a-z0-9_]*\Z", re.IGNORECASE)


def parse_inline(paths: Sequence[str], target: RequestTarget, model: Model, capabilities: Capabilities) -> InlineTree:
    """The tree for the paths, with `*` expanded.

    Raises: BadInline for an invalid path, InlineNoninlineable for a path without a target, NotAvailable for
    configuration that is disabled.
    """
    if not paths:
        return {}
    inlineable = inlineable_tree(target, model)
    configuration = CONFIGURATION_NAMES if target.group is None else ()
    inline: InlineTree = {}
    for path in paths:
        if path == "*":
            _merge(inline, {name: subtree for name, subtree in inlineable.items() if name not in configuration})
        else:
            _select(inline, inlineable, path)
    for name in configuration:
        if name in inline and name not in capabilities.available:
            raise problems.NotAvailable(f"/{name}")
    return inline


def inlineable_tree(target: RequestTarget, model: Model) -> InlineableTree:
    """All parts that a response about the target could inline."""
    if target.kind in (PathKind.REGISTRY, PathKind.EXPORT):
        groups: InlineableTree = {name: _group_tree(type) for name, type in model.groups.items()}
        return {**dict.fromkeys(CONFIGURATION_NAMES), **groups}
    if target.kind in (PathKind.GROUPS, PathKind.GROUP) and target.group:
        return _group_tree(target.group)
    if target.kind in (PathKind.RESOURCES, PathKind.RESOURCE) and target.resource:
        return _resource_tree(target.resource)
    if target.kind in (PathKind.VERSIONS, PathKind.VERSION) and target.resource:
        return _version_tree(target.resource)
    return {}


def inlined_types(type: str, inline: InlineTree) -> Iterator[str]:
    """The entity types that a response about a type (`dirs`, `/`) inlines from below it."""
    depth = -1 if type == "/" else type.count(".")
    if depth == 2:
        return
    for name, nested_inline in inline.items():
        if name in CONFIGURATION_NAMES if depth < 0 else depth == 1 and name != "versions":
            continue
        child = name if depth < 0 else f"{type}.{name}"
        yield child
        yield from inlined_types(child, nested_inline)


def _group_tree(type: GroupType) -> InlineableTree:
    return {name: _resource_tree(resource) for name, resource in type.resources.items()}


def _resource_tree(type: ResourceType) -> InlineableTree:
    return {**_version_tree(type), "meta": None, "versions": _version_tree(type)}


def _version_tree(type: ResourceType) -> InlineableTree:
    return {type.singular: None} if type.hasdocument else {}


def _select(inline: InlineTree, inlineable: InlineableTree, path: str) -> None:
    *steps, last_step = path.split(".")
    if not all(_STEP.match(step) for step in steps) or not (last_step == "*" or _STEP.match(last_step)):
        raise problems.BadInline(value=path, error_detail="it takes names joined by dots, and * as the last name only")
    inlineable_below: InlineableTree | None = inlineable
    for step in steps if last_step == "*" else (*steps, last_step):
        if inlineable_below is None or step not in inlineable_below:
            raise problems.InlineNoninlineable(name=path)
        inline, inlineable_below = inline.setdefault(step, {}), inlineable_below[step]
    if last_step == "*":
        if inlineable_below is None:
            raise problems.InlineNoninlineable(name=path)
        _merge(inline, inlineable_below)


def _merge(inline: InlineTree, inlineable: InlineableTree) -> None:
    for name, nested in inlineable.items():
        _merge(inline.setdefault(name, {}), nested or {})
