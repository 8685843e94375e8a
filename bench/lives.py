"""What happens in a generated history: who asks for what, with the skew of real registries.

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
from bench.recent import RecentWorld

T = TypeVar("T")

#: How often each method of `Lives` is asked for a command, out of the sum of all.
_ACTS: Final = {
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
#: Entities that are remembered; beyond that the Groups that get least are left alone for ever.
_REMEMBERED: Final = 40_000
#: Of one Group, and of one Resource but for the few that get thousands.
_RESOURCES: Final = 2000
_VERSIONS: Final = 300
#: Where Resources have more than one Version.
_VERSIONED: Final = "/schemagroups/"
#: How many Resources get as many Versions as this.
_CHAINS: Final = 3
_CHAIN: Final = 3000
#: Events of an import at most.
_IMPORT: Final = 5000
#: Deleted Groups that may come back.
_GRAVES: Final = 20


@dataclass(slots=True)
class _Group:
    plural: str
    xid: str
    resources: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)

    @property
    def collection(self) -> str:
        return f"{self.xid}/{KINDS[self.plural].resources}"


class Lives:
    """Gives the next command, and expects the world to be as it left it.

    events: of the whole history, which says how large an import may be.
    """

    def __init__(self, world: RecentWorld, chance: Random, events: int) -> None:
        self._world = world
        self._chance = chance
        self._most = min(_IMPORT, events // 20)
        self._groups: list[_Group] = []
        self._graves: list[_Group] = []
        self._chains: list[str] = []
        self._made = 0

    def next(self, left: int) -> Command:
        """left: events that are still wanted; no more than about so many come of it."""
        self._forget()
        self._most = min(self._most, left)
        while True:
            act = self._chance.choices(tuple(_ACTS), tuple(_ACTS.values()))[0]
            command: Command | None = getattr(self, f"_{act}")()
            if command is not None:
                return command

    # --- one entity or a few; None where there is nothing to do it with ------------------------------------------

    def _group(self) -> Command:
        group = self._new_group()
        return WriteTree(group.xid, KINDS[group.plural].group(self._chance), WriteMethod.PUT)

    def _edit_group(self) -> Command | None:
        group = self._zipf(self._groups)
        return WriteTree(group.xid, self._edited(), WriteMethod.PATCH) if group else None

    def _resource(self) -> Command | None:
        group = self._zipf(self._groups)
        if group is None or len(group.resources) >= _RESOURCES:
            return None
        return self._put(group, f"{group.collection}/{self._name()}")

    def _revive(self) -> Command | None:
        group = self._zipf(self._groups)
        return self._put(group, self._taken(group.gone)) if group and group.gone else None

    def _edit(self) -> Command | None:
        found = self._hot()
        return WriteTree(found, self._edited(), WriteMethod.PATCH) if found else None

    def _version(self) -> Command | None:
        found = self._hot()
        if not found or not found.startswith(_VERSIONED) or self._world.count(f"{found}/versions") >= _VERSIONS:
            return None
        return WriteTree(found, self._body(found), WriteMethod.POST)

    def _deprecate(self) -> Command | None:
        found = self._hot()
        told = {"deprecated": bodies.deprecated(self._chance)}
        return WriteTree(f"{found}/meta", told, WriteMethod.PATCH) if found else None

    def _pin(self) -> Command | None:
        found = self._hot()
        versions = self._world.members(f"{found}/versions") if found else ()
        if len(versions) < 2:
            return None
        told: Body = {"defaultversionsticky": False}
        if self._chance.random() < 0.5:
            told = {"defaultversionid": self._chance.choice(versions).id}
        return WriteTree(f"{found}/meta", told, WriteMethod.PATCH)

    def _drop_version(self) -> Command | None:
        found = self._hot()
        versions = self._world.members(f"{found}/versions") if found else ()
        return DeleteEntities(self._chance.choice(versions).xid) if len(versions) > 1 else None

    def _drop(self) -> Command | None:
        group = self._zipf(self._groups)
        if group is None or not group.resources:
            return None
        xid = self._taken(group.resources)
        if self._announced(xid):  # may not go before its time
            group.resources.append(xid)
            return WriteTree(f"{xid}/meta", {"deprecated": None}, WriteMethod.PATCH)
        group.gone.append(xid)
        return DeleteEntities(xid)

    def _drop_group(self) -> Command | None:
        if len(self._groups) < 20:
            return None
        at = self._chance.randrange(10, len(self._groups))
        if any(map(self._announced, self._groups[at].resources)):
            return None
        group = self._groups.pop(at)
        self._graves.append(group)
        return DeleteEntities(group.xid)

    def _revive_group(self) -> Command | None:
        if not self._graves:
            return None
        group = self._taken(self._graves)
        self._groups.append(group)
        group.gone, group.resources = group.gone + group.resources, []
        return WriteTree(group.xid, KINDS[group.plural].group(self._chance), WriteMethod.PUT)

    # --- many in one interaction ---------------------------------------------------------------------------------

    def _import_groups(self) -> Command:
        """New Groups, most of them small."""
        left, tree = self._size(), dict[str, Body]()
        while left > 0:
            group = self._new_group()
            kind = KINDS[group.plural]
            named = [self._name() for _ in range(min(left // 2 + 1, int(500 ** self._chance.random())))]
            group.resources += [f"{group.collection}/{name}" for name in named]
            members = {name: kind.resource(self._chance) for name in named}
            body = {**kind.group(self._chance), kind.resources: members}
            tree.setdefault(group.plural, {})[group.xid.rpartition("/")[2]] = body
            left -= 1 + 2 * len(named)
        return WriteTree("/", tree, WriteMethod.POST)

    def _import_edits(self) -> Command | None:
        """A change of everything in one Group."""
        group = self._zipf(self._groups)
        some = group.resources[: self._size() // 2] if group else []
        tree = {xid.rpartition("/")[2]: self._edited() for xid in some}
        return WriteTree(group.collection, tree, WriteMethod.PATCH) if group and tree else None

    def _import_versions(self) -> Command | None:
        """The past of a Resource that comes in one go."""
        found, alive = self._hot(), [xid for xid in self._chains if self._world.get(xid)]
        if found and found not in alive and found.startswith(_VERSIONED) and len(alive) < _CHAINS:
            alive.append(found)
        self._chains = alive
        if not alive:
            return None
        xid = self._chance.choice(alive)
        room = _CHAIN - self._world.count(f"{xid}/versions")
        count = min(room, self._size() // 4) if room > 0 else 1
        tree = {f"v{self._made}.{n}": self._body(xid) for n in range(count)}
        self._made += 1
        return WriteTree(f"{xid}/versions", tree, WriteMethod.POST)

    # --- chance --------------------------------------------------------------------------------------------------

    def _size(self) -> int:
        """Events of a large interaction, about."""
        return int(self._most * (0.2 + 0.8 * self._chance.random()))

    def _hot(self) -> str | None:
        group = self._zipf(self._groups)
        return self._zipf(group.resources) if group else None

    def _zipf(self, some: Sequence[T]) -> T | None:
        """One of them: the n-th as often as 1/n says."""
        return some[int((len(some) + 1) ** self._chance.random()) - 1] if some else None

    def _taken(self, some: list[T]) -> T:
        """Any of them, which is taken away."""
        return some.pop(self._chance.randrange(len(some)))

    def _new_group(self) -> _Group:
        plural = self._chance.choices(tuple(KINDS), SHARES)[0]
        group = _Group(plural, f"/{plural}/{self._name()}")
        self._groups.append(group)
        return group

    def _announced(self, xid: str) -> bool:
        """Whether a Resource's removal is set to a day."""
        resource = self._world.get(xid)
        return bool(resource and "removal" in resource.attributes["meta"].get("deprecated", {}))

    def _name(self) -> str:
        self._made += 1
        return f"{bodies.words(self._chance, 1)}-{self._made}"

    def _put(self, group: _Group, xid: str) -> Command:
        group.resources.append(xid)
        return WriteTree(xid, self._body(xid), WriteMethod.PUT)

    def _body(self, xid: str) -> Body:
        return KINDS[xid.split("/")[1]].resource(self._chance)

    def _edited(self) -> dict[str, Any]:
        if self._chance.random() < 0.3:
            return {"labels": bodies.labels(self._chance)}
        return {"description": bodies.words(self._chance, 6)}

    def _forget(self) -> None:
        """Keeps memory flat: Groups behind the first ones, and old graves, are never looked at again."""
        while self._world.live > _REMEMBERED and len(self._groups) > 20:
            back = self._chance.randrange(len(self._groups) // 2, len(self._groups))
            self._world.forget(self._groups.pop(back).xid)
        while len(self._graves) > _GRAVES:
            self._world.forget(self._graves.pop(0).xid)
