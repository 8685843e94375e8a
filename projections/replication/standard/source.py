"""A server of the standard API as what it holds: all at once where it nests answers, else page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote

from domain.model import GroupType, Model, ResourceType
from domain.values import xid as xids
from projections.replication.remote_client import RemoteClient, RemoteError
from projections.replication.standard.cached_responses import CachedResponses
from projections.replication.standard.comparable import (
    NO_CONTENT,
    BrokenEntity,
    ComparableGroup,
    ComparableResource,
    ComparableVersion,
    DocumentContent,
    comparable_group,
    comparable_resource,
    comparable_version,
)
from projections.replication.standard.response_checks import (
    check_id,
    content_hash,
    decode_base64,
    is_about_entity,
    items_of,
    nested_members,
)

#: Where lists show no Versions but the default ones, a look takes in all of them the first time, and then each so many
#: times.
FULL_LOOK_INTERVAL: Final = 10
#: What lists of Resources are to show as well, for a look to see all that changes.
_INLINE: Final = "?inline=meta,versions"
#: Answers that refuse to nest anything, or that much.
_NOT_NESTED: Final = (400, 405, 406, 413, 501)
#: Answers of a server that has no such thing to show.
_NOTHING: Final = (400, 404, 405, 410, 501)


FormedT = TypeVar("FormedT")


class ListedGroup(NamedTuple):
    """A Group with its Resources by xid, each None where it looks as it did in the last look.

    What is none of its type is the error that says why; its xid may be any text.
    """

    xid: str
    form: ComparableGroup | BrokenEntity
    resources: Iterator[tuple[str, ComparableResource | BrokenEntity | None]]


class StandardSource:
    """model: what its Groups are. types: of which Groups anybody wants to know. Both are set before the first look.

    What it does raises RemoteError, and BrokenForm for what is no xRegistry. A look passes over what is broken.
    """

    def __init__(self, remote: RemoteClient) -> None:
        self.answers = CachedResponses(remote)
        self.model: Model
        self.types: Sequence[str]
        self._remote = remote
        self._flags, self._exports = self._capabilities()
        self._nests = self._inlines = "inline" in self._flags
        self._signs: dict[str, bytes] = {}  # by xid: of what is listed, and of what is seen in thorough looks only
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

    def again(self, xid: str) -> None:
        """The next look gives a Resource whether it has changed or not."""
        self._signs.pop(xid, None)

    def look(self) -> None:
        """Another look begins."""
        if self._looks % FULL_LOOK_INTERVAL == 0:
            self._signs = {}
        self._looks += 1

    def groups(self, root: str) -> Iterator[ListedGroup] | None:
        """The Groups at and below the registry or a Group; None where nothing has changed there.

        None of them where there is no such Group.
        """
        if self._nests:
            try:
                found = self.answers.changed(self._nested(root))
            except RemoteError as error:
                if error.status == 404 and root != xids.REGISTRY:
                    return iter(())
                if error.status not in (404, *_NOT_NESTED):
                    raise
                self._nests = False  # it says that it nests, and does not, or not that much
            except BrokenEntity:
                pass  # one thing that is no JSON spoils all that it is nested in
            else:
                return None if found is None else self._nested_groups(root, found)
        return self._listed_groups(root)

    def group(self, xid: str) -> ComparableGroup | None:
        """One Group without what is below it; None where there is none."""
        found = self.answers.found(quote(xid))
        return None if found is None else comparable_group(found, self._group_type(xid))

    def resource(self, xid: str) -> ComparableResource | None:
        """One Resource; None where there is none."""
        meta = self.answers.found(f"{quote(xid)}/meta")
        return None if meta is None else self._resource(xid, meta)

    def has(self, xid: str) -> bool:
        """Whether there is a Group or a Resource."""
        suffix = "/meta" if len(xids.segments(xid)) == 4 else ""
        try:
            return self.answers.found(quote(xid) + suffix) is not None
        except BrokenEntity:
            return True

    def _capabilities(self) -> tuple[frozenset[str], bool]:
        """The flags that it offers, and whether it exports."""
        try:
            given = self.capabilities()
        except BrokenEntity:
            given = {}  # it offers nothing that could be relied on
        flags = given.get("flags")
        apis = {str(name).strip("/") for name in (*items_of(given.get("available")), *items_of(given.get("apis")))}
        return frozenset(map(str, items_of(flags))), "export" in apis

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

    def _nested_groups(self, root: str, found: Mapping[str, Any]) -> Iterator[ListedGroup]:
        if root != xids.REGISTRY:
            yield self._nested_group(root, found, xids.entity_id(root))
            return
        for plural in self.types:
            try:
                for id, each in nested_members(found, plural):
                    yield self._nested_group(f"/{plural}/{id}", each, id)
            except BrokenEntity as error:
                yield ListedGroup(f"/{plural}", error, iter(()))

    def _nested_group(self, xid: str, found: Any, id: str) -> ListedGroup:
        return ListedGroup(xid, self._group(xid, found, id), self._nested_resources(xid, found))

    def _nested_resources(self, group: str, found: Any) -> Iterator[tuple[str, ComparableResource | BrokenEntity]]:
        for name in self._group_type(group).resources:
            try:
                resources = nested_members(found, name)
            except BrokenEntity as error:
                yield f"{group}/{name}", error
                continue
            for id, each in resources:
                xid = f"{group}/{name}/{id}"
                yield xid, self._formed(xid, id, partial(self._nested_resource, xid, each))

    def _nested_resource(self, xid: str, given: Any) -> ComparableResource:
        meta = given.get("meta") if isinstance(given, Mapping) else None
        if not isinstance(meta, Mapping):
            raise BrokenEntity("it comes without a meta")
        return self._form(xid, meta, () if "xref" in meta else nested_members(given, "versions"))

    def _listed_groups(self, root: str) -> Iterator[ListedGroup]:
        if root != xids.REGISTRY:
            found = self.answers.found(quote(root))
            if found is not None:
                yield ListedGroup(root, self._group(root, found, xids.entity_id(root)), self._listed_resources(root))
            return
        for plural in self.types:
            try:
                for id, each in self._collection(f"/{plural}"):
                    xid = f"/{plural}/{id}"
                    yield ListedGroup(xid, self._group(xid, each, id), self._listed_resources(xid))
            except BrokenEntity as error:
                yield ListedGroup(f"/{plural}", error, iter(()))

    def _listed_resources(self, group: str) -> Iterator[tuple[str, ComparableResource | BrokenEntity | None]]:
        for name in self._group_type(group).resources:
            try:
                for id, each in self._resources(f"{group}/{name}"):
                    xid = f"{group}/{name}/{id}"
                    found = self._formed(xid, id, partial(self._listed_resource, xid, each))
                    if not isinstance(found, tuple):
                        yield xid, found
                    elif self._signs.get(xid) == found[0]:
                        yield xid, None
                    elif (form := self._formed(xid, id, found[1])) is not None:
                        self._signs[xid] = found[0]
                        yield xid, form
            except BrokenEntity as error:
                yield f"{group}/{name}", error

    def _listed_resource(self, xid: str, given: Any) -> tuple[bytes, Callable[[], ComparableResource]] | None:
        """What its list and its meta show, as a sign, and what makes its form of that; None where it is gone by now."""
        if isinstance(given, Mapping) and "meta" in given and "versions" in given:
            return content_hash(given), partial(self._nested_resource, xid, given)
        meta = self.answers.found(f"{quote(xid)}/meta")
        return None if meta is None else (content_hash([given, meta]), partial(self._resource, xid, meta))

    def _resource(self, xid: str, meta: Mapping[str, Any]) -> ComparableResource:
        return self._form(xid, meta, () if "xref" in meta else self._collection(f"{xid}/versions"))

    def _form(self, xid: str, meta: Mapping[str, Any], versions: Iterable[tuple[str, Any]]) -> ComparableResource:
        type = self._type(xid)
        forms = [(id, self._version(f"{xid}/versions/{id}", each, type, id)) for id, each in versions]
        if not forms and "xref" not in meta:
            raise BrokenEntity("it comes without Versions")
        return comparable_resource(meta, type, forms)

    def _group(self, xid: str, given: Any, id: str) -> ComparableGroup | BrokenEntity:
        return self._formed(xid, id, lambda: comparable_group(given, self._group_type(xid)))

    def _formed(self, xid: str, id: str, make: Callable[[], FormedT]) -> FormedT | BrokenEntity:
        """What is made of an entity's answers, or the error that tells why there is nothing. Raises: RemoteError."""
        try:
            check_id(id)
            return make()
        except BrokenEntity as error:
            return BrokenEntity(str(error), error.xid or xid)
        except RemoteError as error:
            if not is_about_entity(error):
                raise
            return BrokenEntity(str(error), xid)

    def _resources(self, path: str) -> Iterator[tuple[str, Any]]:
        """The Resources of a collection with all that a list can show of them."""
        if self._inlines:
            try:
                yield from self._collection(path, _INLINE)
                return
            except RemoteError as error:
                if error.status not in _NOT_NESTED:
                    raise
                self._inlines = False
        yield from self._collection(path)

    def _collection(self, path: str, query: str = "") -> Iterator[tuple[str, Any]]:
        """Its members; none where the server has no such collection."""
        try:
            yield from self.answers.members(quote(path) + query)
        except RemoteError as error:
            if error.status != 404:
                raise

    def _version(self, xid: str, given: Any, type: ResourceType, id: str) -> ComparableVersion:
        try:
            check_id(id)
            return comparable_version(given, type, self._content(xid, given, type))
        except BrokenEntity as error:
            raise BrokenEntity(str(error), xid) from None

    def _content(self, xid: str, given: Any, type: ResourceType) -> DocumentContent:
        """A Version's document as far as it came with it."""
        if not type.hasdocument or not isinstance(given, dict) or given.get(f"{type.singular}url"):
            return NO_CONTENT
        encoded = given.get(f"{type.singular}base64")
        if encoded is not None:
            return DocumentContent.of(decode_base64(encoded))
        if type.singular in given:
            return DocumentContent(lambda: self._document(xid), value=given[type.singular])
        return DocumentContent(lambda: self._document(xid))

    def _document(self, xid: str) -> bytes:
        try:
            answer = self._remote.ask("GET", quote(xid))
        except RemoteError as error:
            if not is_about_entity(error):
                raise
            raise BrokenEntity(str(error), xid) from None
        if not answer.is_success:
            raise BrokenEntity(f"its document is elsewhere, the server answers {answer.status_code}", xid)
        return answer.content

    def _group_type(self, xid: str) -> GroupType:
        return self.model.groups[xids.segments(xid)[0]]

    def _type(self, xid: str) -> ResourceType:
        return self._group_type(xid).resources[xids.segments(xid)[2]]
