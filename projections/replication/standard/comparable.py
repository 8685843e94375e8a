"""Entities as two registries can be compared by them: without what each of them has of its own.

Epochs, URLs, counts, what checks have found and when a Group or a `meta` was last touched belong to the registry that
says them, and so do its id and its times. All else is handed over: attributes, documents, ids of Versions, births, and
when a Version was modified.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

from domain.decisions.changes.drafts import VALIDATION_ATTRIBUTES
from domain.model import GroupType, ResourceType
from domain.model.rfc3339 import to_utc
from domain.values import xid as xids
from domain.values.json_text import InvalidJson, dumps, loads

_OWN: Final = frozenset(("epoch", "self", "shortself", "xid"))
_OF_RESOURCES: Final = frozenset(("meta", "metaurl", "versions", "versionsurl", "versionscount"))
_OF_VERSIONS: Final = _OWN | _OF_RESOURCES | frozenset(("versionid", "isdefault", *VALIDATION_ATTRIBUTES))
_OF_META: Final = _OWN | frozenset(("modifiedat", "readonly", "defaultversionurl"))
_OF_DEFAULT: Final = frozenset(("defaultversionid", "defaultversionsticky"))
_TIMES: Final = ("createdat", "modifiedat")
_OF_REGISTRY: Final = frozenset(
    ("specversion", "registryid", "capabilities", "model", "modelsource", "createdat", "modifiedat")
)
_BELOW: Final = ("", "url", "count")
_ABSENT: Final = object()


class BrokenEntity(ValueError):
    """What another registry says is no entity of this type. xid: of the entity there; empty where it is not known."""

    def __init__(self, said: str, xid: str = "") -> None:
        self.xid = xid
        super().__init__(said)


@dataclass(frozen=True, slots=True)
class DocumentContent:
    """A document. read: its bytes, empty where there is none. digest: their SHA-256 in hex, where it is known at once.
    value: the JSON that it was given as, where it was.
    """

    read: Callable[[], bytes] = field(compare=False)
    digest: str | None = None
    value: Any = field(default=_ABSENT, compare=False)

    @classmethod
    def of(cls, content: bytes) -> DocumentContent:
        """That of known bytes."""
        return cls(lambda: content, sha256(content).hexdigest())

    def sign(self) -> Any:
        """What is known of it at once."""
        return self.digest or (None if self.value is _ABSENT else [self.value])

    def says(self, content: bytes) -> bool:
        """Whether it was given as a value that bytes are a text of."""
        if isinstance(self.value, str) and self.value.encode() == content:
            return True
        try:
            return self.value is not _ABSENT and dumps(loads(content)) == dumps(self.value)
        except (InvalidJson, ValueError):
            return False


NO_CONTENT: Final = DocumentContent.of(b"")


@dataclass(frozen=True, slots=True)
class ComparableVersion:
    """A Version: what it shares with its copies."""

    attributes: Mapping[str, Any]
    content: DocumentContent = NO_CONTENT

    def same(self, other: ComparableVersion) -> bool:
        """Whether one is a copy of the other. Where a document is not at hand, its Version's times speak for it."""
        if self.attributes != other.attributes:
            return False
        mine, theirs = self.content, other.content
        if mine.digest and theirs.digest:
            return mine.digest == theirs.digest
        known, given = (mine, theirs) if mine.digest else (theirs, mine)
        return given.value is _ABSENT or given.says(known.read()) or given.read() == known.read()

    def tree(self, type: ResourceType) -> dict[str, Any]:
        """What a write of it says. Reads the document."""
        content = self.content.read() if type.hasdocument else b""
        return {**self.attributes, **({f"{type.singular}base64": _base64(content)} if content else {})}


@dataclass(frozen=True, slots=True)
class ComparableResource:
    """A Resource. meta: with nothing but `xref` in a pointer. modifiedat: of its meta, for those who take it over."""

    meta: Mapping[str, Any]
    versions: Mapping[str, ComparableVersion]
    modifiedat: str | None = field(default=None, compare=False)

    @property
    def createdat(self) -> str | None:
        """When it was made, wherever that was: with its xid it tells one thing from another. None for pointers."""
        return self.meta.get("createdat")

    @property
    def latest(self) -> str:
        """When a Version of it was modified last."""
        return max((str(each.attributes.get("modifiedat", "")) for each in self.versions.values()), default="")

    def changed(self, before: ComparableResource) -> dict[str, ComparableVersion]:
        """The Versions that are not the same before, in the order in which they came to be."""
        known = before.versions
        return {id: form for id, form in self.versions.items() if id not in known or not form.same(known[id])}

    def same(self, other: ComparableResource) -> bool:
        """Whether one is a copy of the other."""
        ids = self.versions.keys() == other.versions.keys()
        return ids and self.meta == other.meta and not self.changed(other)

    def sign(self) -> bytes:
        """Something that another form has only if it says the same."""
        return _content_hash(
            [self.meta, {id: [form.attributes, form.content.sign()] for id, form in self.versions.items()}]
        )

    def meta_tree(self) -> dict[str, Any]:
        """What a write of its meta says."""
        late = {"modifiedat": self.modifiedat} if self.modifiedat and "xref" not in self.meta else {}
        return {**self.meta, **late}

    def tree(self, type: ResourceType) -> dict[str, Any]:
        """What a write of all of it says."""
        if "xref" in self.meta:
            return {"meta": self.meta_tree()}
        return {"meta": self.meta_tree(), "versions": {id: form.tree(type) for id, form in self.versions.items()}}


@dataclass(frozen=True, slots=True)
class ComparableGroup:
    """A Group without what is below it. modifiedat: for those who take it over."""

    attributes: Mapping[str, Any]
    modifiedat: str | None = field(default=None, compare=False)

    @property
    def createdat(self) -> str | None:
        """See `ComparableResource.createdat`."""
        return self.attributes.get("createdat")

    def same(self, other: ComparableGroup) -> bool:
        """Whether one is a copy of the other."""
        return self == other

    def sign(self) -> bytes:
        """See `ComparableResource.sign`."""
        return _content_hash(self.attributes)

    def tree(self) -> dict[str, Any]:
        """What a write of it says."""
        return {**self.attributes, **({"modifiedat": self.modifiedat} if self.modifiedat else {})}


def comparable_group(given: Any, type: GroupType) -> ComparableGroup:
    """A Group as an answer shows it. Raises: BrokenEntity."""
    below = {f"{plural}{ending}" for plural in type.resources for ending in _BELOW}
    attributes = _shared_attributes(given, _OWN | below | {f"{type.singular}id"})
    return ComparableGroup(attributes, attributes.pop("modifiedat", None))


def comparable_registry(given: Any, plurals: Iterable[str]) -> ComparableGroup:
    """A registry's own attributes as an answer shows them. plurals: of its Groups. Raises: BrokenEntity."""
    below = {f"{plural}{ending}" for plural in plurals for ending in _BELOW}
    return ComparableGroup(_shared_attributes(given, _OWN | _OF_REGISTRY | below))


def comparable_resource(
    given: Any, type: ResourceType, versions: Iterable[tuple[str, ComparableVersion]]
) -> ComparableResource:
    """A Resource by its meta. versions: those that it has. Raises: BrokenEntity."""
    meta = _shared_attributes(given, _OF_META | {f"{type.singular}id"})
    if "xref" in meta:
        return ComparableResource({"xref": meta["xref"]}, {})
    if not meta.get("defaultversionsticky"):
        meta = {name: value for name, value in meta.items() if name not in _OF_DEFAULT}
    ordered = sorted(versions, key=lambda found: (found[1].attributes.get("createdat", ""), found[0].lower()))
    return ComparableResource(meta, dict(ordered), _times(given).get("modifiedat"))


def comparable_version(given: Any, type: ResourceType, content: DocumentContent = NO_CONTENT) -> ComparableVersion:
    """A Version as an answer or an after-image shows it. Raises: BrokenEntity."""
    inlined = {type.singular, f"{type.singular}base64"} if type.hasdocument else set()
    return ComparableVersion(_shared_attributes(given, _OF_VERSIONS | inlined | {f"{type.singular}id"}), content)


def map_xref(form: ComparableResource, names: Mapping[str, str]) -> ComparableResource:
    """A pointer with its target where that is in the other registry. names: xids of Groups there, by lower-cased xids
    of Groups here.
    """
    parts = xids.segments(str(form.meta.get("xref", "")))
    name = names.get(xids.join(*parts[:2]).lower()) if len(parts) == 4 else None
    return ComparableResource({"xref": f"{name}/{'/'.join(parts[2:])}"}, {}) if name else form


def _shared_attributes(given: Any, left: Iterable[str]) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        raise BrokenEntity("an entity is no JSON object")
    left = frozenset(left)
    return {name: value for name, value in given.items() if value is not None and name not in left} | _times(
        given, left
    )


def _times(given: Mapping[str, Any], left: Iterable[str] = ()) -> dict[str, str]:
    try:
        return {name: to_utc(given[name]) for name in _TIMES if given.get(name) and name not in left}
    except (ValueError, TypeError, OverflowError) as error:
        raise BrokenEntity(str(error)) from None


def _content_hash(value: Any) -> bytes:
    return sha256(dumps(value)).digest()


def _base64(content: bytes) -> str:
    return b64encode(content).decode()
