"""The commands of a generated history, with the skew of real registries.

A few Groups, and a few Resources of each, get most of the writes. Most interactions are small; now and then one brings
thousands of entities. Some things go and come back, and a few Resources have thousands of Versions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Final, TypeVar

from annals.domain.decisions.commands import Command, DeleteEntities, WriteMethod, WriteTree
from bench import bodies
from bench.bodies import KINDS, SHARES, Body
from bench.memory_world import MemoryWorld

T = TypeVar("T")

#: How often each method of `CommandGenerator` generates a command, in relation to the others.
_WEIGHTS: Final = {
    "edit": 3000,
    "version": 3000,
    "resource": 1400,
    "edit_group": 500,
    "deprecate": 300,
    "pin": 200,
    "drop_version": 300,
    "drop": 400,
    "revive": 300,
    "group": 200,
    "drop_group": 10,
    "revive_group": 5,
    "import_groups": 14,
    "import_edits": 3,
    "import_versions": 10,
}
#: Entities in memory; beyond that, Groups with few writes are never written again.
_MAX_ENTITIES: Final = 40_000
#: The maximum Resources of a Group, and Versions of a Resource besides the few that get thousands.
_MAX_RESOURCES: Final = 2000
_MAX_VERSIONS: Final = 300
#: Where Resources have more than one Version.
_VERSIONED: Final = "/schemagroups/"
#: How many Resources get thousands of Versions, and the maximum of these.
_LONG_CHAINS: Final = 3
_MAX_CHAIN: Final = 3000
#: The maximum number of events of an import.
_MAX_IMPORT: Final = 5000
#: The maximum number of deleted Groups that may be created again.
_MAX_DELETED_GROUPS: Final = 20


@dataclass(slots=True)
class _Group:
    plural: str
    xid: str
    resources: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)

    @property
    def collection(self) -> str:
        return f"{self.xid}/{KINDS[self.plural].resources}"


class CommandGenerator:
    """Chooses commands at random, each of which must have been applied to the world before the next.

    events: of the whole history; an import has a twentieth of them at most.
    """

    def __init__(self, world: MemoryWorld, random: Random, events: int) -> None:
        self._world = world
        self._random = random
        self._max_import = min(_MAX_IMPORT, events // 20)
        self._groups: list[_Group] = []
        self._deleted_groups: list[_Group] = []
        self._long_chains: list[str] = []
        self._name_count = 0

    def next(self, remaining: int) -> Command:
        """The next command. remaining: the events that the history still lacks, which limits the size of an import."""
        self._forget()
        self._max_import = min(self._max_import, remaining)
        while True:
            name = self._random.choices(tuple(_WEIGHTS), tuple(_WEIGHTS.values()))[0]
            command: Command | None = getattr(self, f"_{name}")()
            if command is not None:
                return command

    # --- one entity or a few; None where there is nothing to do it with ------------------------------------------

    def _group(self) -> Command:
        group = self._new_group()
        return WriteTree(group.xid, KINDS[group.plural].group(self._random), WriteMethod.PUT)

    def _edit_group(self) -> Command | None:
        group = self._zipf(self._groups)
        return WriteTree(group.xid, self._edited(), WriteMethod.PATCH) if group else None

    def _resource(self) -> Command | None:
        group = self._zipf(self._groups)
        if group is None or len(group.resources) >= _MAX_RESOURCES:
            return None
        return self._put(group, f"{group.collection}/{self._name()}")

    def _revive(self) -> Command | None:
        group = self._zipf(self._groups)
        return self._put(group, self._pop_random(group.deleted)) if group and group.deleted else None

    def _edit(self) -> Command | None:
        xid = self._popular_resource()
        return WriteTree(xid, self._edited(), WriteMethod.PATCH) if xid else None

    def _version(self) -> Command | None:
        xid = self._popular_resource()
        if not xid or not xid.startswith(_VERSIONED) or self._world.count(f"{xid}/versions") >= _MAX_VERSIONS:
            return None
        return WriteTree(xid, self._body(xid), WriteMethod.POST)

    def _deprecate(self) -> Command | None:
        xid = self._popular_resource()
        attributes = {"deprecated": bodies.deprecated(self._random)}
        return WriteTree(f"{xid}/meta", attributes, WriteMethod.PATCH) if xid else None

    def _pin(self) -> Command | None:
        xid = self._popular_resource()
        versions = self._world.members(f"{xid}/versions") if xid else ()
        if len(versions) < 2:
            return None
        attributes: Body = {"defaultversionsticky": False}
        if self._random.random() < 0.5:
            attributes = {"defaultversionid": self._random.choice(versions).id}
        return WriteTree(f"{xid}/meta", attributes, WriteMethod.PATCH)

    def _drop_version(self) -> Command | None:
        xid = self._popular_resource()
        versions = self._world.members(f"{xid}/versions") if xid else ()
        return DeleteEntities(self._random.choice(versions).xid) if len(versions) > 1 else None

    def _drop(self) -> Command | None:
        group = self._zipf(self._groups)
        if group is None or not group.resources:
            return None
        xid = self._pop_random(group.resources)
        if self._has_removal_date(xid):
            group.resources.append(xid)
            return WriteTree(f"{xid}/meta", {"deprecated": None}, WriteMethod.PATCH)
        group.deleted.append(xid)
        return DeleteEntities(xid)

    def _drop_group(self) -> Command | None:
        if len(self._groups) < 20:
            return None
        index = self._random.randrange(10, len(self._groups))
        if any(map(self._has_removal_date, self._groups[index].resources)):
            return None
        group = self._groups.pop(index)
        self._deleted_groups.append(group)
        return DeleteEntities(group.xid)

    def _revive_group(self) -> Command | None:
        if not self._deleted_groups:
            return None
        group = self._pop_random(self._deleted_groups)
        self._groups.append(group)
        group.deleted, group.resources = group.deleted + group.resources, []
        return WriteTree(group.xid, KINDS[group.plural].group(self._random), WriteMethod.PUT)

    # --- many in one interaction ---------------------------------------------------------------------------------

    def _import_groups(self) -> Command:
        """New Groups, most of them small."""
        remaining, tree = self._size(), dict[str, Body]()
        while remaining > 0:
            group = self._new_group()
            kind = KINDS[group.plural]
            names = [self._name() for _ in range(min(remaining // 2 + 1, int(500 ** self._random.random())))]
            group.resources += [f"{group.collection}/{name}" for name in names]
            members = {name: kind.resource(self._random) for name in names}
            body = {**kind.group(self._random), kind.resources: members}
            tree.setdefault(group.plural, {})[group.xid.rpartition("/")[2]] = body
            remaining -= 1 + 2 * len(names)
        return WriteTree("/", tree, WriteMethod.POST)

    def _import_edits(self) -> Command | None:
        """A change of everything in one Group."""
        group = self._zipf(self._groups)
        resources = group.resources[: self._size() // 2] if group else []
        tree = {xid.rpartition("/")[2]: self._edited() for xid in resources}
        return WriteTree(group.collection, tree, WriteMethod.PATCH) if group and tree else None

    def _import_versions(self) -> Command | None:
        """The past of a Resource that comes in one go."""
        found, alive = self._popular_resource(), [xid for xid in self._long_chains if self._world.get(xid)]
        if found and found not in alive and found.startswith(_VERSIONED) and len(alive) < _LONG_CHAINS:
            alive.append(found)
        self._long_chains = alive
        if not alive:
            return None
        xid = self._random.choice(alive)
        room = _MAX_CHAIN - self._world.count(f"{xid}/versions")
        count = min(room, self._size() // 4) if room > 0 else 1
        tree = {f"v{self._name_count}.{n}": self._body(xid) for n in range(count)}
        self._name_count += 1
        return WriteTree(f"{xid}/versions", tree, WriteMethod.POST)

    # --- random choices ------------------------------------------------------------------------------------------

    def _size(self) -> int:
        """Events of a large interaction, about."""
        return int(self._max_import * (0.2 + 0.8 * self._random.random()))

    def _popular_resource(self) -> str | None:
        """A Resource that gets many writes; None if there is none."""
        group = self._zipf(self._groups)
        return self._zipf(group.resources) if group else None

    def _zipf(self, items: Sequence[T]) -> T | None:
        """One of them, by the distribution of Zipf; None if there is none."""
        return items[int((len(items) + 1) ** self._random.random()) - 1] if items else None

    def _pop_random(self, items: list[T]) -> T:
        """Removes one of them, each as likely as the others, and returns it."""
        return items.pop(self._random.randrange(len(items)))

    def _new_group(self) -> _Group:
        plural = self._random.choices(tuple(KINDS), SHARES)[0]
        group = _Group(plural, f"/{plural}/{self._name()}")
        self._groups.append(group)
        return group

    def _has_removal_date(self, xid: str) -> bool:
        """Whether a Resource may not be deleted before some date."""
        resource = self._world.get(xid)
        return bool(resource and "removal" in resource.attributes["meta"].get("deprecated", {}))

    def _name(self) -> str:
        self._name_count += 1
        return f"{bodies.words(self._random, 1)}-{self._name_count}"

    def _put(self, group: _Group, xid: str) -> Command:
        group.resources.append(xid)
        return WriteTree(xid, self._body(xid), WriteMethod.PUT)

    def _body(self, xid: str) -> Body:
        return KINDS[xid.split("/")[1]].resource(self._random)

    def _edited(self) -> dict[str, Any]:
        if self._random.random() < 0.3:
            return {"labels": bodies.labels(self._random)}
        return {"description": bodies.words(self._random, 6)}

    def _forget(self) -> None:
        """Keeps memory flat: Groups with few writes, and Groups deleted long ago, are never written again."""
        while self._world.live > _MAX_ENTITIES and len(self._groups) > 20:
            index = self._random.randrange(len(self._groups) // 2, len(self._groups))
            self._world.forget(self._groups.pop(index).xid)
        while len(self._deleted_groups) > _MAX_DELETED_GROUPS:
            self._world.forget(self._deleted_groups.pop(0).xid)
