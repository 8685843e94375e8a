"""The part of a registry that a link replicates: all of it, named or filtered Groups, or single Resources.

A filter uses one of the dialects of subscriptions over the attribute `subject`, the xid of a Group in lower case.
Therefore a Group is permanently in or out, whatever its attributes become, and a copy always has a Group's first
events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from annals.domain.access.roles import group_of
from annals.domain.subscriptions import filters
from annals.domain.values import xid as xids


@dataclass(frozen=True, slots=True)
class LinkScope:
    """groups, resources: xids in lower case.

    group_filter: matches a Group's xid against the filters; None if there are none.
    """

    groups: frozenset[str] = frozenset()
    resources: frozenset[str] = frozenset()
    group_filter: Callable[[str], bool] | None = field(default=None, compare=False)

    @classmethod
    def from_members(cls, members: Mapping[str, Any]) -> LinkScope:
        """The scope of its JSON form, which is already validated."""
        return cls(
            frozenset(map(str.lower, members.get("groups", ()))),
            frozenset(map(str.lower, members.get("resources", ()))),
            _compile_group_filter(members.get("filters", ())),
        )

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole registry, with its model and its capabilities."""
        return not self.groups and not self.resources and self.group_filter is None

    def has(self, xid: str) -> bool:
        """Whether it contains an entity.

        Only the whole contains the registry itself, its model and its capabilities.
        """
        if xids.is_outside_tree(xids.stream(xid)):
            return False
        if self.is_whole:
            return True
        group = group_of(xid)
        if not group or xid in xids.ROOT_STREAMS:
            return False
        if group in self.groups or (self.group_filter is not None and self.group_filter(group)):
            return True
        resource = xids.stream(xids.resource_of(xid))
        return resource in self.resources or (resource == group and self.reaches_into(group))

    def reaches_into(self, group: str) -> bool:
        """Whether it contains something below a Group. group: its xid in lower case."""
        if self.is_whole or group in self.groups or (self.group_filter is not None and self.group_filter(group)):
            return True
        return any(group_of(resource) == group for resource in self.resources)

    def overlaps(self, other: LinkScope) -> bool:
        """Whether two scopes may overlap.

        Two filters never count as overlapping, because their overlap cannot be computed.
        """
        if self.is_whole or other.is_whole:
            return True
        return any(map(self.reaches_into, other._named_groups())) or any(map(other.reaches_into, self._named_groups()))

    def _named_groups(self) -> set[str]:
        """The Groups that it names, or in which it names a Resource."""
        return {*self.groups, *map(group_of, self.resources)}

    def may_have_groups_of(self, plural: str) -> bool:
        """Whether it may contain Groups of a type."""
        group_types = (xids.segments(xid)[0] for xid in (*self.groups, *self.resources))
        return self.is_whole or self.group_filter is not None or plural in group_types


def _compile_group_filter(expressions: Sequence[Any]) -> Callable[[str], bool] | None:
    if not expressions:
        return None
    matches = filters.compile_filters(list(expressions), "/scope/filters").matches
    return lambda group: matches({"subject": group})
