"""Entities in a form in which two registries can be compared, without what belongs to each registry.

Epochs, URLs, counts, results of checks, and the modification times of Groups and `meta` belong to the registry that
shows them. So do a registry's own id and times. Everything else is copied: attributes, documents, ids of Versions,
creation times, and the modification times of Versions.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final, Literal, NamedTuple

from annals.domain.decisions.changes.drafts import VALIDATION_ATTRIBUTES
from annals.domain.model import GroupType, ResourceType
from annals.domain.model.validation.rfc3339 import to_utc
from annals.domain.values import xid as xids
from annals.domain.values.json_text import InvalidJson, dumps, loads

_REGISTRY_NAMES: Final = frozenset(("epoch", "self", "shortself", "xid"))
_RESOURCE_NAMES: Final = frozenset(("meta", "metaurl", "versions", "versionsurl", "versionscount"))
_EXCLUDED_OF_VERSIONS: Final = (
    _REGISTRY_NAMES | _RESOURCE_NAMES | frozenset(("versionid", "isdefault", *VALIDATION_ATTRIBUTES))
)
_EXCLUDED_OF_META: Final = _REGISTRY_NAMES | frozenset(("modifiedat", "readonly", "defaultversionurl"))
_DEFAULT_VERSION_NAMES: Final = frozenset(("defaultversionid", "defaultversionsticky"))
_TIMES: Final = ("createdat", "modifiedat")
_EXCLUDED_OF_REGISTRY: Final = frozenset(
    ("specversion", "registryid", "capabilities", "model", "modelsource", "createdat", "modifiedat")
)
_COLLECTION_SUFFIXES: Final = ("", "url", "count")
_ABSENT: Final = object()


class BrokenEntity(ValueError):
    """An answer that is no valid entity of its type. xid: the remote xid; empty if unknown."""

    def __init__(self, message: str, xid: str = "") -> None:
        self.xid = xid
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class DocumentContent:
    """A document.

    read: returns its bytes, empty if there is none.
    digest: their SHA-256 in hex, if known without reading.
    value: the JSON value in which it was sent, if it was.
    """

    read: Callable[[], bytes] = field(compare=False)
    digest: str | None = None
    value: Any = field(default=_ABSENT, compare=False)

    @classmethod
    def from_bytes(cls, content: bytes) -> DocumentContent:
        """The content of known bytes."""
        return cls(lambda: content, sha256(content).hexdigest())

    def known_hash(self) -> Any:
        """What is known without reading: the digest or the JSON value."""
        return self.digest or (None if self.value is _ABSENT else [self.value])

    def has_value_of(self, content: bytes) -> bool:
        """Whether some bytes are a text of the JSON value in which it was sent."""
        if isinstance(self.value, str) and self.value.encode() == content:
            return True
        try:
            return self.value is not _ABSENT and dumps(loads(content)) == dumps(self.value)
        except (InvalidJson, ValueError):
            return False


NO_CONTENT: Final = DocumentContent.from_bytes(b"")


@dataclass(frozen=True, slots=True)
class ComparableVersion:
    """A Version without what belongs to its registry."""

    attributes: Mapping[str, Any]
    content: DocumentContent = NO_CONTENT

    def is_copy_of(self, other: ComparableVersion) -> bool:
        """Whether one is a copy of the other.

        Attributes, which include times, decide alone if one document is known neither by its digest nor by a value.
        Reads documents only if one of them was sent as a value.
        """
        if self.attributes != other.attributes:
            return False
        own_content, other_content = self.content, other.content
        if own_content.digest and other_content.digest:
            return own_content.digest == other_content.digest
        hashed, unhashed = (own_content, other_content) if own_content.digest else (other_content, own_content)
        return unhashed.value is _ABSENT or unhashed.has_value_of(hashed.read()) or unhashed.read() == hashed.read()

    def write_body(self, type: ResourceType, *, is_replacement: bool = False) -> dict[str, Any]:
        """The body of a write. Reads the document.

        is_replacement: an empty document is written too, because the former one would stay.
        """
        if not type.hasdocument or f"{type.singular}url" in self.attributes:
            return dict(self.attributes)
        content = self.content.read()
        has_body = bool(content) or is_replacement
        return {**self.attributes, **({f"{type.singular}base64": _base64(content)} if has_body else {})}


class ResourceWrite(NamedTuple):
    """One write. path: below the Resource, such as `/versions`."""

    method: Literal["PUT", "POST", "DELETE"]
    path: str
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class ComparableResource:
    """A Resource without what belongs to its registry.

    meta: only `xref` for a Resource that points to another.
    modifiedat: of its meta; not compared, but copied.
    """

    meta: Mapping[str, Any]
    versions: Mapping[str, ComparableVersion]
    modifiedat: str | None = field(default=None, compare=False)

    @property
    def createdat(self) -> str | None:
        """When it was created, in any registry: with the xid, it identifies the Resource. None for a pointer."""
        return self.meta.get("createdat")

    @property
    def last_modified(self) -> str:
        """The latest modification time of its Versions."""
        return max((str(version.attributes.get("modifiedat", "")) for version in self.versions.values()), default="")

    def changed_versions(self, previous: ComparableResource) -> dict[str, ComparableVersion]:
        """The Versions that differ from those of a previous state, in order of creation."""
        previous_versions = previous.versions
        return {
            id: version
            for id, version in self.versions.items()
            if id not in previous_versions or not version.is_copy_of(previous_versions[id])
        }

    def writes(self, previous: ComparableResource | None, type: ResourceType) -> list[ResourceWrite]:
        """What turns a previous state into this one, in this order; None: there is no Resource yet."""
        if previous is None or "xref" in self.meta or "xref" in previous.meta:
            return [] if previous == self else [ResourceWrite("PUT", "", self.write_body(type))]
        bodies = {
            id: version.write_body(type, is_replacement=id in previous.versions)
            for id, version in self.changed_versions(previous).items()
        }
        deleted_ids = sorted(previous.versions.keys() - self.versions.keys())
        deletion = [ResourceWrite("DELETE", "/versions", {id: {} for id in deleted_ids})] if deleted_ids else []
        # A deletion changes the ancestors and times of other Versions, which are written after it for that reason. But
        # a Resource without Versions would be deleted.
        is_deletion_last = len(deleted_ids) == len(previous.versions)
        return [
            *([] if is_deletion_last else deletion),
            *([ResourceWrite("POST", "/versions", bodies)] if bodies else []),
            *([ResourceWrite("PUT", "/meta", self.meta_write_body())] if self.meta != previous.meta else []),
            *(deletion if is_deletion_last else []),
        ]

    def is_copy_of(self, other: ComparableResource) -> bool:
        """Whether one is a copy of the other."""
        has_same_ids = self.versions.keys() == other.versions.keys()
        return has_same_ids and self.meta == other.meta and not self.changed_versions(other)

    def content_hash(self) -> bytes:
        """A hash that differs whenever the contents differ."""
        return _content_hash(
            [
                self.meta,
                {id: [version.attributes, version.content.known_hash()] for id, version in self.versions.items()},
            ]
        )

    def meta_write_body(self) -> dict[str, Any]:
        """The body of a write of its meta."""
        modified_time = {"modifiedat": self.modifiedat} if self.modifiedat and "xref" not in self.meta else {}
        return {**self.meta, **modified_time}

    def write_body(self, type: ResourceType) -> dict[str, Any]:
        """The body of a write of the whole Resource."""
        if "xref" in self.meta:
            return {"meta": self.meta_write_body()}
        return {
            "meta": self.meta_write_body(),
            "versions": {id: version.write_body(type) for id, version in self.versions.items()},
        }


@dataclass(frozen=True, slots=True)
class ComparableGroup:
    """A Group without its contents. modifiedat: not compared, but copied."""

    attributes: Mapping[str, Any]
    modifiedat: str | None = field(default=None, compare=False)

    @property
    def createdat(self) -> str | None:
        """See `ComparableResource.createdat`."""
        return self.attributes.get("createdat")

    def is_copy_of(self, other: ComparableGroup) -> bool:
        """Whether one is a copy of the other."""
        return self == other

    def content_hash(self) -> bytes:
        """See `ComparableResource.content_hash`."""
        return _content_hash(self.attributes)

    def write_body(self) -> dict[str, Any]:
        """The body of a write."""
        return {**self.attributes, **({"modifiedat": self.modifiedat} if self.modifiedat else {})}


def comparable_group(attributes_json: Any, type: GroupType) -> ComparableGroup:
    """A Group from an answer. Raises: BrokenEntity."""
    collection_attributes = {f"{plural}{suffix}" for plural in type.resources for suffix in _COLLECTION_SUFFIXES}
    attributes = _shared_attributes(attributes_json, _REGISTRY_NAMES | collection_attributes | {f"{type.singular}id"})
    return ComparableGroup(attributes, attributes.pop("modifiedat", None))


def comparable_registry(attributes_json: Any, plurals: Iterable[str]) -> ComparableGroup:
    """A registry's own attributes from an answer. plurals: of its Group types. Raises: BrokenEntity."""
    collection_attributes = {f"{plural}{suffix}" for plural in plurals for suffix in _COLLECTION_SUFFIXES}
    return ComparableGroup(
        _shared_attributes(attributes_json, _REGISTRY_NAMES | _EXCLUDED_OF_REGISTRY | collection_attributes)
    )


def comparable_resource(
    meta_json: Any, type: ResourceType, versions: Iterable[tuple[str, ComparableVersion]]
) -> ComparableResource:
    """A Resource from its meta and its Versions. Raises: BrokenEntity."""
    meta = _shared_attributes(meta_json, _EXCLUDED_OF_META | {f"{type.singular}id"})
    if "xref" in meta:
        return ComparableResource({"xref": meta["xref"]}, {})
    if not meta.get("defaultversionsticky"):
        meta = {name: value for name, value in meta.items() if name not in _DEFAULT_VERSION_NAMES}
    ordered = sorted(versions, key=lambda found: (found[1].attributes.get("createdat", ""), found[0].lower()))
    return ComparableResource(meta, dict(ordered), _utc_times(meta_json).get("modifiedat"))


def comparable_version(
    attributes_json: Any, type: ResourceType, content: DocumentContent = NO_CONTENT
) -> ComparableVersion:
    """A Version from an answer or an after-image. Raises: BrokenEntity."""
    document_attributes = {type.singular, f"{type.singular}base64"} if type.hasdocument else set()
    return ComparableVersion(
        _shared_attributes(attributes_json, _EXCLUDED_OF_VERSIONS | document_attributes | {f"{type.singular}id"}),
        content,
    )


def map_xref(comparable: ComparableResource, names: Mapping[str, str]) -> ComparableResource:
    """A pointer with the remote xid of its target.

    names: xids of remote Groups, by lower-cased xids of local ones.
    """
    parts = xids.segments(str(comparable.meta.get("xref", "")))
    remote_group = names.get(xids.join(*parts[:2]).lower()) if len(parts) == 4 else None
    return ComparableResource({"xref": f"{remote_group}/{'/'.join(parts[2:])}"}, {}) if remote_group else comparable


def _shared_attributes(attributes_json: Any, excluded_names: Iterable[str]) -> dict[str, Any]:
    if not isinstance(attributes_json, Mapping):
        raise BrokenEntity("an entity is not a JSON object")
    excluded_names = frozenset(excluded_names)
    return {
        name: value for name, value in attributes_json.items() if value is not None and name not in excluded_names
    } | _utc_times(attributes_json, excluded_names)


def _utc_times(attributes_json: Mapping[str, Any], excluded_names: Iterable[str] = ()) -> dict[str, str]:
    try:
        return {
            name: to_utc(attributes_json[name])
            for name in _TIMES
            if attributes_json.get(name) and name not in excluded_names
        }
    except (ValueError, TypeError, OverflowError) as error:
        raise BrokenEntity(str(error)) from None


def _content_hash(value: Any) -> bytes:
    return sha256(dumps(value)).digest()


def _base64(content: bytes) -> str:
    return b64encode(content).decode()
