"""Entities while a command is decided: the previous state and the next state of each.

Decisions mutate entities only in drafts. An EntityDraft is the registry, a Group, a Resource's meta or a Version. A
ResourceDraft holds a meta and Versions together, because they are completed together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from annals.domain.compat.legacy_apis import FACADE, version_number
from annals.domain.confluent.facts import CONFLUENT
from annals.domain.decisions.rules.epochs import check_epoch
from annals.domain.errors.problems import InvalidAttribute
from annals.domain.model import Level, ResourceType
from annals.domain.registry.entities import Attributes, Entity
from annals.domain.registry.events import DeletionReason
from annals.domain.registry.explicit_values import (
    DEFAULT_MARKS,
    DefaultMarks,
    explicit_values,
    join_marks,
    mark_equal_defaults,
    mark_filled_in,
    retain_marks,
    unchanged_marks,
)
from annals.domain.replication import LINK
from annals.domain.values import timestamps
from annals.domain.values import xid as xids

_TOUCH_NAMES: Final = frozenset({"epoch", "modifiedat"})


#: No defaults other than those of the model.
NO_DEFAULTS: Final[Mapping[tuple[str, ...], Any]] = {}


class EntityDraft:
    """One set of attributes that has its own epoch.

    level: its definition in the model in force. previous_level: its definition in the model under which `before` was
    written. before: its last after-image, None for a new entity. is_written: the request wrote it. is_touched: it
    counts as updated although the request did not write it (a child was added, an ancestor was removed).
    keeps_modifiedat: the request gave a `modifiedat`, which is used. is_pointer: it is the meta of a Resource with an
    xref; readers do not see its epoch, so the epoch does not change (ENT-136). always_changed: names that `changed`
    contains regardless of their values. attributes: what clients can set, validated as a whole.
    """

    __slots__ = (
        "_attributes",
        "always_changed",
        "before",
        "is_pointer",
        "is_touched",
        "is_written",
        "keeps_modifiedat",
        "level",
        "now",
        "previous_level",
        "xid",
    )

    def __init__(self, xid: str, level: Level, previous_level: Level, before: Attributes | None, now: str) -> None:
        self.xid = xid
        self.level = level
        self.previous_level = previous_level
        self.before = before
        self.now = now
        self.is_written = False
        self.is_touched = False
        self.keeps_modifiedat = False
        self.is_pointer = False
        self.always_changed: frozenset[str] = frozenset()
        self._attributes: Attributes | None = None

    @property
    def is_new(self) -> bool:
        return self.before is None

    @property
    def is_updated(self) -> bool:
        return self.is_new or self.is_written or self.is_touched

    @property
    def epoch(self) -> int:
        if self.before is None:
            return 1
        return int(self.before["epoch"]) + ((self.is_written or self.is_touched) and not self.is_pointer)

    @property
    def attributes(self) -> Attributes:
        if self._attributes is None:
            self._attributes = self.previous_level.settable_values(self.before or {})
        return self._attributes

    @attributes.setter
    def attributes(self, attributes: Attributes) -> None:
        self._attributes = attributes

    def write(
        self,
        requested: Mapping[str, Any],
        *,
        patch: bool,
        fixed: Attributes | None = None,
        defaults: Mapping[tuple[str, ...], Any] = NO_DEFAULTS,
        is_complete_read: bool = False,
    ) -> None:
        """Applies a request's attributes to the stored ones and validates the result as a whole.

        requested: without ids and server-set names. fixed: what a full replacement keeps next to read-only values, such
        as ids. defaults: values for paths that have none; they apply before the defaults of the level.
        is_complete_read: the attributes were read from a response of another registry.
        Raises: what Level.complete raises, MismatchedEpoch.
        """
        accepted = self._accept(requested, patch)
        if patch:
            self._check_names()
        base_attributes = (
            {**self.attributes}
            if patch
            else {**self.level.readonly_values(self.before or {}, accepted), **self._createdat()}
        )
        without_defaults = {**base_attributes, **(fixed or {}), **accepted, **self._timestamps(accepted)}
        with_defaults = fill_defaults(without_defaults, defaults)
        removed_names = frozenset(name for name, value in accepted.items() if value is None)
        validated = self.level.complete(with_defaults, self.xid, removed_names)
        has_modifiedat = accepted.get("modifiedat") is not None
        is_echoed = has_modifiedat and self._repeats_modifiedat(validated)
        if (
            is_complete_read and has_modifiedat and not is_echoed
        ):  # from another registry, which filled in defaults and cannot say which
            marks = mark_equal_defaults(self.level.assumed_defaults(validated), validated, defaults)
            without_defaults = explicit_values(
                without_defaults, {name: mark for name, mark in marks.items() if name in accepted}
            )
        self.mark_defaults(without_defaults, validated, frozenset(accepted) if patch else None, is_echoed=is_echoed)
        self.keeps_modifiedat = has_modifiedat and not is_echoed
        self.attributes = validated if self.keeps_modifiedat else {**validated, "modifiedat": self.now}
        self.is_written = True

    def restore(self, past_attributes: Attributes, level: Level) -> None:
        """Sets a past after-image, including read-only values and `createdat`, as an update at the current time.

        level: its definition in the model of that time. Raises: what Level.complete raises.
        """
        settable = level.settable_values(past_attributes)
        validated = self.level.complete(settable, self.xid)
        self.mark_defaults(settable, validated, None)
        self.attributes = {**validated, "modifiedat": self.now}
        self.is_written = True

    def touch(self) -> None:
        """Marks the entity as updated without a write to it."""
        self.is_touched = True
        if not self.is_written:
            self.attributes = {**self.attributes, "modifiedat": self.now}

    def become_pointer(self) -> None:
        """Turns the draft into the meta of a Resource with an xref: its only attributes are its times (ENT-132)."""
        createdat = self.before["createdat"] if self.before else self.now
        self.attributes = {"createdat": createdat, "modifiedat": self.now}
        self.is_written = self.is_pointer = True

    def become_ordinary(self, shown_epoch: int) -> None:
        """Turns the draft into an ordinary meta again.

        shown_epoch: the epoch that readers saw until now; the next epoch is higher.
        """
        assert self.before is not None, "a pointer is stored"
        self.before = {**self.before, "epoch": max(self.before["epoch"], shown_epoch)}
        self.attributes = {name: value for name, value in self.attributes.items() if name != "xref"}
        self.is_pointer = False

    def comply_with_model(self) -> None:
        """Validates the stored attributes against a new model; a value that a default fills in is an update (MOD-12).

        Raises: what Level.complete raises, InvalidAttribute for an extension whose name the new model defines (ENT-18).
        """
        self._check_names()
        validated = self.level.complete(self.attributes, self.xid)
        if validated != self.attributes:
            self.mark_defaults(self.attributes, validated, frozenset())
            self.attributes = validated
            self.touch()

    def mark_defaults(
        self,
        without_defaults: Attributes,
        validated: Attributes,
        replaced_names: frozenset[str] | None,
        *,
        is_echoed: bool = False,
    ) -> None:
        """Hook for subclasses: receives the attributes before and after defaults are filled in.

        replaced_names: names that the request gives; None: all. is_echoed: the request sends back a response that
        showed the stored values.
        """

    def after_image(self, **server_set: Any) -> Attributes:
        """The after-image's attributes, in serialization order."""
        return self.level.order({**self.attributes, "epoch": self.epoch, **server_set})

    def touched_names(self) -> frozenset[str]:
        """The names that every update lists (EV-43)."""
        return _TOUCH_NAMES if self.is_written or self.is_touched else frozenset()

    def _accept(self, requested: Mapping[str, Any], patch: bool) -> Attributes:
        check_epoch(self.xid, requested.get("epoch"), None if self.before is None else self.before["epoch"])
        without_epoch = {name: value for name, value in requested.items() if name != "epoch"}
        return self.level.accept(without_epoch, self.attributes if patch else None)

    def _check_names(self) -> None:
        """Raises: InvalidAttribute if a new model defines the name of a stored extension differently."""
        if self.level is self.previous_level or self.is_written:
            return
        newly_defined = self.level.spec_names - self.previous_level.spec_names
        for name in sorted(newly_defined.intersection(self.attributes)):
            detail = "the new model gives this name to an attribute of its own; remove the stored value first"
            raise InvalidAttribute(self.xid, name=name, error_detail=detail)

    def _createdat(self) -> Attributes:
        return {"createdat": self.before["createdat"]} if self.before else {}

    def _timestamps(self, accepted: Attributes) -> Attributes:
        """Timestamps that the server sets (ENT-60): both on creation, later `modifiedat` with each update."""
        missing_names = {name for name in ("createdat", "modifiedat") if accepted.get(name) is None}
        return {name: self.now for name in missing_names if self.is_new or name == "modifiedat" or name in accepted}

    def _repeats_modifiedat(self, validated: Attributes) -> bool:
        """Whether the request's `modifiedat` is the stored one.

        Then the client sent back what it read, and it means now.
        """
        stored = self.before["modifiedat"] if self.before else None
        return stored is not None and timestamps.instant_key(validated["modifiedat"]) == timestamps.instant_key(stored)


class GroupDraft(EntityDraft):
    """The registry or a Group: an EntityDraft that counts the members of its collections.

    facade: values that only the legacy APIs know. confluent: those that only Confluent's API knows. link: id of the
    link that delivered the entity.
    """

    __slots__ = ("confluent", "count_deltas", "entity", "facade", "is_deleted", "link")

    def __init__(
        self, xid: str, level: Level, previous_level: Level, entity: Entity | None, now: str, link: str | None = None
    ) -> None:
        """link: id of the link that writes, if the entity is new."""
        super().__init__(xid, level, previous_level, entity.attributes if entity else None, now)
        self.entity = entity
        self.is_deleted = False
        self.count_deltas: dict[str, int] = {}
        self.facade: Attributes = entity.private.get(FACADE, {}) if entity else {}
        self.confluent: Attributes = entity.private.get(CONFLUENT, {}) if entity else {}
        self.link: str | None = entity.private.get(LINK) if entity else link or None

    def count(self, plural: str, change: int) -> None:
        """Adds to a member count.

        This is an update of the entity that lists the collection and its count (EV-51, EV-65).
        """
        self.count_deltas[plural] = self.count_deltas.get(plural, 0) + change
        self.always_changed |= {plural, plural + "count"}
        self.touch()

    def counts(self, plurals: Mapping[str, Any]) -> dict[str, int]:
        stored = self.before or {}
        return {
            f"{plural}count": stored.get(f"{plural}count", 0) + self.count_deltas.get(plural, 0) for plural in plurals
        }


#: The results of format and compatibility checks on a Version (ENT-110).
VALIDATION_ATTRIBUTES: Final = (
    "formatvalidated",
    "formatvalidatedreason",
    "compatibilityvalidated",
    "compatibilityvalidatedreason",
)


class VersionDraft(EntityDraft):
    """One Version.

    validation_results: the results of the checks of its format and compatibility. document: SHA-256 of its bytes.
    ordering_time: its ordering time in `modifiedat` mode (ENT-101). source_ancestor: in that mode, its ancestor in the
    registry that it was copied from. default_marks: which of its values are defaults.
    facade: values that only the legacy APIs know. assigned_number: its number in the legacy APIs, if the id does not
    determine it. confluent: values that only Confluent's API knows.
    """

    __slots__ = (
        "ancestor",
        "assigned_number",
        "confluent",
        "default_marks",
        "deletion_reason",
        "document",
        "entity",
        "facade",
        "id",
        "ordering_time",
        "source_ancestor",
        "validation_results",
    )

    def __init__(self, xid: str, level: Level, previous_level: Level, entity: Entity | None, now: str) -> None:
        super().__init__(xid, level, previous_level, entity.attributes if entity else None, now)
        self.entity = entity
        private = entity.private if entity else {}
        self.id = xids.entity_id(xid)
        attributes = entity.attributes if entity else {}
        self.validation_results: dict[str, Any] = {
            name: attributes[name] for name in VALIDATION_ATTRIBUTES if name in attributes
        }
        self.document: str | None = private.get("document")
        self.ordering_time: str | None = private.get("ordered")
        self.default_marks: DefaultMarks = private.get(DEFAULT_MARKS, {})
        self.facade: Attributes = private.get(FACADE, {})
        self.confluent: Attributes = private.get(CONFLUENT, {})
        self.assigned_number: int | None = None
        self.ancestor: str | None = None  # as the request states it; None: not stated
        self.source_ancestor: str | None = None
        self.deletion_reason: DeletionReason | None = None  # why it was deleted: deleted, pruned

    @property
    def ancestorid(self) -> str | None:
        """The ancestor that this request states, otherwise the stored one."""
        return self.ancestor or (self.before["ancestorid"] if self.before else None)

    @property
    def number(self) -> int:
        """Its number in the legacy APIs; 0 if it has none yet."""
        return version_number(self.id, {FACADE: self.facade})

    def private(self) -> dict[str, Any]:
        members = {
            "document": self.document,
            "ordered": self.ordering_time,
            DEFAULT_MARKS: self.default_marks or None,
            FACADE: self.facade or None,
            CONFLUENT: self.confluent or None,
        }
        return {name: value for name, value in members.items() if value is not None}

    def mark_defaults(
        self,
        without_defaults: Attributes,
        validated: Attributes,
        replaced_names: frozenset[str] | None,
        *,
        is_echoed: bool = False,
    ) -> None:
        marks = mark_filled_in(without_defaults, validated)
        if self.default_marks and replaced_names is not None:
            unreplaced_marks = {name: mark for name, mark in self.default_marks.items() if name not in replaced_names}
            marks = join_marks(retain_marks(unreplaced_marks, validated), marks)
        if self.default_marks and is_echoed:
            marks = join_marks(unchanged_marks(self.default_marks, self.before or {}, validated), marks)
        self.default_marks = marks


@dataclass(frozen=True, slots=True)
class DefaultVersionRequest:
    """What a request says about a Resource's default Version (ENT-82, ENT-83).

    is_sticky: None leaves it unchanged. id: the named Version; None: the newest, or the current one if `keeps_current`
    is set.
    """

    is_sticky: bool | None = None
    id: str | None = None
    keeps_current: bool = True


#: The member of a Resource's private values with the id of its newest Version, if its default Version is sticky.
NEWEST: Final = "newest"

#: For a request that says nothing about the default Version.
NO_DEFAULT_REQUEST: Final = DefaultVersionRequest()


class ResourceDraft:
    """A Resource: its meta, and those of its Versions that the request needs.

    xref: the Resource that it refers to; then it has no Versions of its own. readonly: the value in its meta.
    has_all_versions: `versions` holds all Versions. always_changed: names that `changed` contains regardless of their
    values. facade: values that only the legacy APIs know. confluent: those that only Confluent's API knows. link: id of
    the link that delivered the Resource.
    default_request: what the request says about the default Version. newest: id of the newest Version, empty if it is
    not known. only_appends: the change adds Versions after the newest one, and leaves all others as they are.
    """

    __slots__ = (
        "always_changed",
        "confluent",
        "counter",
        "default_request",
        "entity",
        "facade",
        "has_all_versions",
        "is_deleted",
        "link",
        "membership_changed",
        "meta",
        "needs_completion",
        "needs_recheck",
        "newest",
        "only_appends",
        "previous_type",
        "readonly",
        "type",
        "versions",
        "xid",
        "xref",
    )

    def __init__(
        self,
        xid: str,
        type: ResourceType,
        previous_type: ResourceType,
        entity: Entity | None,
        now: str,
        link: str | None = None,
    ) -> None:
        """link: id of the link that writes, if the entity is new."""
        self.xid = xid
        self.type = type
        self.previous_type = previous_type
        self.entity = entity
        self.meta = EntityDraft(xid + "/meta", type.meta, previous_type.meta, _meta_of(entity) if entity else None, now)
        self.xref: str | None = entity.attributes["meta"].get("xref") if entity else None
        self.readonly: bool = entity.attributes["meta"].get("readonly", False) if entity else False
        self.versions: dict[str, VersionDraft] = {}
        self.has_all_versions = entity is None or self.xref is not None
        self.always_changed: frozenset[str] = frozenset()
        self.counter: int = entity.private.get("counter", 0) if entity else 0
        self.facade: Attributes = entity.private.get(FACADE, {}) if entity else {}
        self.confluent: Attributes = entity.private.get(CONFLUENT, {}) if entity else {}
        self.link: str | None = entity.private.get(LINK) if entity else link or None
        self.newest = newest_version_id(entity) if entity else ""
        self.only_appends = False
        self.default_request = NO_DEFAULT_REQUEST
        self.membership_changed = False
        self.needs_recheck = False  # all of its documents have to be checked again
        self.needs_completion = False  # its Versions' order, roots or default have to be computed again
        self.is_deleted = False

    @property
    def is_new(self) -> bool:
        return self.entity is None

    @property
    def default_before(self) -> str | None:
        return self.entity.attributes.get("versionid") if self.entity else None

    def meta_ids(self) -> dict[str, Any]:
        """The ids that every meta has, regardless of the request; the default Version is computed later."""
        id = xids.entity_id(self.xid)
        return {self.type.singular + "id": id, "defaultversionid": self.default_before or id}

    def live_versions(self) -> list[VersionDraft]:
        return [version for version in self.versions.values() if version.deletion_reason is None]


def newest_version_id(entity: Entity) -> str:
    """The id of the newest Version of a stored Resource; empty if it is not known."""
    if entity.attributes["meta"].get("defaultversionsticky"):
        return str(entity.private.get(NEWEST, ""))
    return str(entity.attributes.get("versionid", ""))


def _meta_of(entity: Entity) -> Attributes:
    """A stored meta as drafts use it. With an xref, it includes the times and the epoch that no response shows."""
    meta: Attributes = entity.attributes["meta"]
    return {**meta, **entity.private["own"], "epoch": entity.epoch} if "xref" in meta else meta


def fill_defaults(attributes: Attributes, defaults: Mapping[tuple[str, ...], Any]) -> Attributes:
    """The attributes with defaults where a value is missing.

    Defaults inside an object apply only if the object is present.
    """
    with_defaults = attributes
    for path, value in defaults.items():
        with_defaults = _fill_default(with_defaults, path, value)
    return with_defaults


def _fill_default(attributes: Attributes, path: tuple[str, ...], value: Any) -> Attributes:
    name, *remaining = path
    current = attributes.get(name)
    if remaining:
        return (
            {**attributes, name: _fill_default(current, tuple(remaining), value)}
            if isinstance(current, dict)
            else attributes
        )
    return attributes if current is not None else {**attributes, name: value}
