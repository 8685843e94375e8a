"""The compiled model: Group types, Resource types and the levels whose attributes entities carry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from domain.entities import Attributes


class Level:
    """The attributes of one level: the registry's, a Group type's, a Version's or a meta's.

    Three steps take a client's words to an entity: `accept` what came in, put it over what is stored, `complete` the
    whole. What only the server sets (`self`, `shortself`, `xid`, `epoch`, `isdefault`, URLs, counts, nested
    collections, `capabilities`, `model`, `modelsource`, the document attributes, `formatvalidated` and its kin) is
    not this class's business: `accept` drops the read-only among it, and `complete` neither asks for it nor is given it.
    """

    def accept(self, given: Mapping[str, Any]) -> Attributes:
        """What a client may say: read-only attributes dropped at every depth; nulls stay (they mean "delete")."""
        raise NotImplementedError

    def retained(self, stored: Attributes) -> Attributes:
        """The stored values that a full replacement keeps: those of read-only attributes that the model defines."""
        raise NotImplementedError

    def complete(self, attributes: Attributes, xid: str, erased: frozenset[str] = frozenset()) -> Attributes:
        """The whole entity: nulls gone, defaults filled in, types checked, timestamps in UTC, in serialization order.

        attributes: everything that clients can set on this level: ids (`dirid`; a Version's `versionid` and
            `ancestorid`), `createdat`, `modifiedat`, and a meta's `defaultversionid`, included.
        erased: names that the request set to null, for the error of a required attribute (ENT-19).
        Raises: InvalidAttribute, UnknownAttribute, RequiredAttributeMissing, MalformedXid.
        """
        raise NotImplementedError

    def order(self, attributes: Attributes) -> Attributes:
        """The same in serialization order: the model's, then extensions by name; server-set names included."""
        raise NotImplementedError


class ResourceType:
    """One Resource type of one Group type. `origin` names the definition (`/messagegroups/messages`, MOD-71)."""

    plural: str
    singular: str
    origin: str
    maxversions: int
    setversionid: bool
    hasdocument: bool
    versionmode: str  # lower case
    singleversionroot: bool
    validateformat: bool
    validatecompatibility: bool
    strictvalidation: bool
    version: Level
    meta: Level

    def document_form(self, contenttype: str | None) -> str:
        """`json`, `string` or `binary`: how a document of this media type is inlined (ENT-126, MOD-80 to 82)."""
        raise NotImplementedError


class GroupType:
    """One Group type; `resources` by plural, in model order, imported ones included."""

    plural: str
    singular: str
    level: Level
    resources: dict[str, ResourceType]
    constraints: dict[str, Any]


class Model:
    """The model in force.

    source: the modelsource as sent, includes and imports unresolved. full: what `GET /model` answers.
    """

    source: dict[str, Any]
    full: dict[str, Any]
    registry: Level
    groups: dict[str, GroupType]

    @classmethod
    def load(cls, source: dict[str, Any], full: dict[str, Any]) -> Model:
        """The model from its stored full form, as the log holds it; nothing is resolved again."""
        raise NotImplementedError
