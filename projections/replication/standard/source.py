"""A server of the standard API as what it holds: all at once where it nests answers, else page by page."""

from __future__ import annotations

import binascii
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from domain import xid as xids
from domain.jsontext import dumps
from domain.model import GroupType, Model, ResourceType
from projections.replication.remote import Remote, RemoteError
from projections.replication.standard.answers import Answers
from projections.replication.standard.forms import (
    NOTHING,
    BrokenForm,
    Content,
    GroupForm,
    ResourceForm,
    VersionForm,
    group_form,
    resource_form,
    version_form,
)

#: A look through pages takes in everything, however it is listed, the first time and then each so many times.
THOROUGH: Final = 10
#: Answers of a server that has no such thing to show.
_NOTHING: Final = (400, 404, 405, 410, 501)


class Listed(NamedTuple):
    """A Group with its Resources by xid, each None where it looks as it did in the last look."""

    xid: str
    form: GroupForm
    resources: Iterator[tuple[str, ResourceForm | None]]


class Source:
    """model: what its Groups are. types: of which Groups anybody wants to know. Both are set before the first look.

    What it does raises RemoteError, and BrokenForm for what is no xRegistry.
    """

    def __init__(self, remote: Remote) -> None:
        self.answers = Answers(remote)
        self.model: Model
        self.types: Sequence[str]
        self._remote = remote
        self._flags, self._exports = self._capabilities()
        self._nests = "inline" in self._flags
        self._signs: dict[str, bytes] = {}
        self._looks = 0
        self._model = "/modelsource"

    def modelsource(self) -> Mapping[str, Any] | None:
        """Its model; None where it is what it was when it was kept."""
        try:
            return self.answers.changed(self._model)
        except RemoteError as error:
            if self._model == "/model" or error.status not in _NOTHING:
                raise
        self._model = "/model"  # which says the same and more
        return self.answers.changed(self._model)

    def registry(self) -> Mapping[str, Any] | None:
        """What it says of itself; None where it is what it was when it was kept, or says nothing."""
        return self._said(self.answers.changed, "/")

    def capabilities(self) -> Mapping[str, Any]:
        """Its capabilities as it shows them; empty where it shows none."""
        return self._said(self.answers.object, "/capabilities") or {}

    def forget(self) -> None:
        """The next look takes in everything, whether it has changed or not."""
        self.answers.forget()
        self._looks = 0

    def look(self) -> None:
        """Another look begins."""
        if self._looks % THOROUGH == 0:
            self._signs = {}
        self._looks += 1

    def groups(self, root: str) -> Iterator[Listed] | None:
        """The Groups at and below the registry or a Group; None where nothing has changed there.

        None of them where there is no such Group.
        """
        if self._nests:
            try:
                found = self.answers.changed(self._nested(root))
            except RemoteError as error:
                if error.status == 404 and root != xids.REGISTRY:
                    return iter(())
                if error.status not in (400, 404, 405, 406, 413):
                    raise
                self._nests = False  # it says that it nests, and does not, or not that much
            else:
                return None if found is None else self._nested_groups(root, found)
        return self._listed_groups(root)

    def group(self, xid: str) -> GroupForm | None:
        """One Group without what is below it; None where there is none."""
        found = self.answers.found(quote(xid))
        return None if found is None else group_form(found, self._group_type(xid))

    def resource(self, xid: str) -> ResourceForm | None:
        """One Resource; None where there is none."""
        type = self._type(xid)
        meta = self.answers.found(f"{quote(xid)}/meta")
        if meta is None:
            return None
        versions = () if "xref" in meta else self._collection(f"{xid}/versions")
        forms = [(id, self._version(f"{xid}/versions/{id}", each, type)) for id, each in versions]
        return resource_form(meta, type, forms)

    def has(self, xid: str) -> bool:
        """Whether there is a Group or a Resource."""
        suffix = "/meta" if len(xids.segments(xid)) == 4 else ""
        return self.answers.found(quote(xid) + suffix) is not None

    def _capabilities(self) -> tuple[frozenset[str], bool]:
        """The flags that it offers, and whether it exports."""
        given = self.capabilities()
        flags = given.get("flags")
        apis = {str(name).strip("/") for name in (*_each(given.get("available")), *_each(given.get("apis")))}
        return frozenset(map(str, _each(flags))), "export" in apis

    def _said(self, ask: Callable[[str], dict[str, Any] | None], path: str) -> dict[str, Any] | None:
        try:
            return ask(path)
        except RemoteError as error:
            if error.status not in _NOTHING:
                raise
            return None

    def _nested(self, root: str) -> str:
        binary = ["binary"] if "binary" in self._flags else []
        if root == xids.REGISTRY and self._exports:
            return "?".join(["/export", *binary])
        document = ["doc"] if "doc" in self._flags else []
        return f"{quote(root)}?{'&'.join([*document, 'inline=*', *binary])}"

    def _nested_groups(self, root: str, found: Mapping[str, Any]) -> Iterator[Listed]:
        if root != xids.REGISTRY:
            yield self._nested_group(root, found)
            return
        for plural in self.types:
            for id, each in _members(found, plural):
                yield self._nested_group(f"/{plural}/{id}", each)

    def _nested_group(self, xid: str, found: Any) -> Listed:
        type = self._group_type(xid)
        return Listed(xid, group_form(found, type), self._nested_resources(xid, found, type))

    def _nested_resources(self, group: str, found: Any, type: GroupType) -> Iterator[tuple[str, ResourceForm]]:
        for name, each in type.resources.items():
            for id, resource in _members(found, name):
                xid = f"{group}/{name}/{id}"
                meta = resource.get("meta") if isinstance(resource, dict) else None
                versions = _members(resource, "versions") if meta and "xref" not in meta else ()
                forms = [(key, self._version(f"{xid}/versions/{key}", one, each)) for key, one in versions]
                yield xid, resource_form(meta, each, forms)

    def _listed_groups(self, root: str) -> Iterator[Listed]:
        if root != xids.REGISTRY:
            form = self.group(root)
            if form is not None:
                yield Listed(root, form, self._listed_resources(root))
            return
        for plural in self.types:
            for id, each in self._collection(f"/{plural}"):
                xid = f"/{plural}/{id}"
                yield Listed(xid, group_form(each, self._group_type(xid)), self._listed_resources(xid))

    def _listed_resources(self, group: str) -> Iterator[tuple[str, ResourceForm | None]]:
        """Those whose default Version and count of Versions are as they were are read in a thorough look only."""
        for name in self._group_type(group).resources:
            for id, each in self._collection(f"{group}/{name}"):
                xid, sign = f"{group}/{name}/{id}", dumps(each)
                if self._signs.get(xid) == sign:
                    yield xid, None
                    continue
                form = self.resource(xid)
                if form is not None:
                    yield xid, form
                    self._signs[xid] = sign

    def _collection(self, path: str) -> Iterator[tuple[str, Any]]:
        """Its members; none where the server has no such collection."""
        try:
            for id, each in self.answers.members(quote(path)):
                yield _checked(id), each
        except RemoteError as error:
            if error.status != 404:
                raise

    def _version(self, xid: str, given: Any, type: ResourceType) -> VersionForm:
        return version_form(given, type, self._content(xid, given, type))

    def _content(self, xid: str, given: Any, type: ResourceType) -> Content:
        """A Version's document as far as it came with it."""
        if not type.hasdocument or not isinstance(given, dict) or given.get(f"{type.singular}url"):
            return NOTHING
        encoded = given.get(f"{type.singular}base64")
        if encoded is not None:
            return Content.of(_bytes(encoded))
        if type.singular in given:
            return Content(lambda: self._document(xid), value=given[type.singular])
        return Content(lambda: self._document(xid))

    def _document(self, xid: str) -> bytes:
        return self._remote.ask("GET", quote(xid)).content

    def _group_type(self, xid: str) -> GroupType:
        return self.model.groups[xids.segments(xid)[0]]

    def _type(self, xid: str) -> ResourceType:
        return self._group_type(xid).resources[xids.segments(xid)[2]]


def _each(given: Any) -> tuple[Any, ...]:
    return tuple(given) if isinstance(given, list | dict) else ()


def _members(given: Any, name: str) -> list[tuple[str, Any]]:
    found = given.get(name) if isinstance(given, dict) else None
    return [(_checked(id), each) for id, each in found.items()] if isinstance(found, dict) else []


def _checked(id: str) -> str:
    """An id, which goes into paths. Raises: BrokenForm."""
    if not xids.ID.match(id):
        raise BrokenForm(f"{id[:200]!r} is no id")
    return id


def _bytes(encoded: Any) -> bytes:
    try:
        return b64decode(encoded, validate=True)
    except (binascii.Error, TypeError, ValueError) as error:
        raise BrokenForm(f"a document is no Base64: {error}") from None
