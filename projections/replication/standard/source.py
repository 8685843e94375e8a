"""Reads the contents of a server of the standard API: all at once if it can inline, else page by page."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote

from annals.domain.model import GroupType, Model, ResourceType
from annals.domain.values import xid as xids
from annals.projections.replication.remote.remote_client import RemoteClient, RemoteError
from annals.projections.replication.standard.cached_responses import CachedResponses
from annals.projections.replication.standard.comparable import (
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
from annals.projections.replication.standard.response_checks import (
    check_id,
    content_hash,
    decode_base64,
    is_about_entity,
    items_of,
    nested_members,
)

#: Interval of full passes, in passes. A full pass, such as the first one, reads all Versions, even if lists show only
#: default ones.
FULL_PASS_INTERVAL: Final = 10
#: The inline flag for lists of Resources, so that a pass sees all changes.
_INLINE_QUERY: Final = "?inline=meta,versions"
#: Statuses of servers that refuse to inline anything, or that much.
_NO_INLINE_STATUSES: Final = (400, 405, 406, 413, 501)
#: Statuses of servers that do not offer something.
_ABSENT_STATUSES: Final = (400, 404, 405, 410, 501)


FormedT = TypeVar("FormedT")


class ListedGroup(NamedTuple):
    """A Group with its Resources by xid. A Resource is None if it is unchanged since the last pass.

    An invalid entity is replaced by the error that gives the reason; its xid may be any text.
    """

    xid: str
    comparable: ComparableGroup | BrokenEntity
    resources: Iterator[tuple[str, ComparableResource | BrokenEntity | None]]


class StandardSource:
    """A server of the standard API.

    model: the definitions of its Groups.
    types: the Group types to read. Both are set before the first pass.
    Its methods raise RemoteError, and BrokenEntity for answers that are not xRegistry. A pass skips broken entities.
    """

    def __init__(self, remote: RemoteClient) -> None:
        self.responses = CachedResponses(remote)
        self.model: Model
        self.types: Sequence[str]
        self._remote = remote
        self._flags, self._can_export = self._capabilities()
        self._can_nest = self._can_inline = "inline" in self._flags
        self._hashes: dict[str, bytes] = {}  # hashes by xid, of listings in this pass
        self._last_hashes: dict[str, bytes] = {}  # of the last pass; empty in full passes
        self._pass_count = 0
        self._model_path = "/modelsource"

    def modelsource(self) -> Mapping[str, Any] | None:
        """Its model; None if it has not changed since its ETag was remembered."""
        try:
            return self.responses.get_if_changed(self._model_path)
        except RemoteError as error:
            if self._model_path == "/model" or error.status not in _ABSENT_STATUSES:
                raise
        self._model_path = "/model"  # it contains the same and more
        return self.responses.get_if_changed(self._model_path)

    def registry(self) -> Mapping[str, Any] | None:
        """Its own attributes; None if they have not changed, or it shows none."""
        return self._fetch_optional(self.responses.get_if_changed, "/")

    def capabilities(self) -> Mapping[str, Any]:
        """Its capabilities; empty if it shows none."""
        return self._fetch_optional(self.responses.get_object, "/capabilities") or {}

    def forget_hash(self, xid: str) -> None:
        """Makes the next pass return a Resource even if it has not changed."""
        self._hashes.pop(xid, None)

    def forget_listings(self) -> None:
        """Makes the next pass return everything, because copies of it may be gone."""
        self._hashes = {}
        self.responses.forget_tags()

    def begin_pass(self) -> None:
        """Begins another pass."""
        self._last_hashes = self._hashes if self._pass_count % FULL_PASS_INTERVAL else {}
        self._hashes = {}
        self._pass_count += 1

    def groups(self, root: str) -> Iterator[ListedGroup] | None:
        """The Groups at and below the registry or a Group; None if nothing there has changed.

        Empty if the Group does not exist.
        """
        if self._can_nest:
            try:
                document = self.responses.get_if_changed(self._nested_path(root))
            except RemoteError as error:
                if error.status in _NO_INLINE_STATUSES:
                    self._can_nest = False  # it offers inlining, but refuses it, or that much
                elif error.status != 404:  # lists show whether the Group exists
                    raise
            except BrokenEntity:
                pass  # one invalid value spoils everything that contains it
            else:
                return None if document is None else self._nested_groups(root, document)
        return self._listed_groups(root)

    def group(self, xid: str) -> ComparableGroup | None:
        """One Group without its contents; None if it does not exist."""
        attributes = self.responses.find_entity(quote(xid))
        return None if attributes is None else comparable_group(attributes, self._group_type(xid))

    def resource(self, xid: str) -> ComparableResource | None:
        """One Resource; None if it does not exist."""
        meta = self.responses.find_entity(f"{quote(xid)}/meta")
        return None if meta is None else self._resource(xid, meta)

    def has(self, xid: str) -> bool:
        """Whether a Group or a Resource exists."""
        suffix = "/meta" if len(xids.segments(xid)) == 4 else ""
        try:
            return self.responses.find_entity(quote(xid) + suffix) is not None
        except BrokenEntity:
            return True

    def _capabilities(self) -> tuple[frozenset[str], bool]:
        """The flags that it offers, and whether it offers exports."""
        try:
            capabilities = self.capabilities()
        except BrokenEntity:
            capabilities = {}  # nothing reliable is offered
        flags = capabilities.get("flags")
        apis = {
            str(name).strip("/")
            for name in (*items_of(capabilities.get("available")), *items_of(capabilities.get("apis")))
        }
        return frozenset(map(str, items_of(flags))), "export" in apis

    def _fetch_optional(self, fetch: Callable[[str], dict[str, Any] | None], path: str) -> dict[str, Any] | None:
        try:
            return fetch(path)
        except RemoteError as error:
            if error.status not in _ABSENT_STATUSES:
                raise
            return None

    def _nested_path(self, root: str) -> str:
        binary_flag = ["binary"] if "binary" in self._flags else []
        if root == xids.REGISTRY and self._can_export:
            return "?".join(["/export", *binary_flag])
        document_flag = ["doc"] if "doc" in self._flags else []
        return f"{quote(root)}?{'&'.join([*document_flag, 'inline=*', *binary_flag])}"

    def _nested_groups(self, root: str, document: Mapping[str, Any]) -> Iterator[ListedGroup]:
        if root != xids.REGISTRY:
            yield self._nested_group(root, document, xids.entity_id(root))
            return
        for plural in self.types:
            try:
                for id, group in nested_members(document, plural):
                    yield self._nested_group(f"/{plural}/{id}", group, id)
            except BrokenEntity as error:
                yield ListedGroup(f"/{plural}", error, iter(()))

    def _nested_group(self, xid: str, group: Any, id: str) -> ListedGroup:
        return ListedGroup(xid, self._comparable_group(xid, group, id), self._nested_resources(xid, group))

    def _nested_resources(
        self, group: str, group_document: Any
    ) -> Iterator[tuple[str, ComparableResource | BrokenEntity]]:
        for name in self._group_type(group).resources:
            try:
                resources = nested_members(group_document, name)
            except BrokenEntity as error:
                yield f"{group}/{name}", error
                continue
            for id, resource in resources:
                xid = f"{group}/{name}/{id}"
                yield xid, self._build_or_broken(xid, id, partial(self._nested_resource, xid, resource))

    def _nested_resource(self, xid: str, resource: Any) -> ComparableResource:
        meta = resource.get("meta") if isinstance(resource, Mapping) else None
        if not isinstance(meta, Mapping):
            raise BrokenEntity("it has no meta")
        return self._comparable_resource(xid, meta, () if "xref" in meta else nested_members(resource, "versions"))

    def _listed_groups(self, root: str) -> Iterator[ListedGroup]:
        if root != xids.REGISTRY:
            attributes = self.responses.find_entity(quote(root))
            if attributes is not None:
                yield ListedGroup(
                    root, self._comparable_group(root, attributes, xids.entity_id(root)), self._listed_resources(root)
                )
            return
        for plural in self.types:
            try:
                for id, attributes_json in self._collection(f"/{plural}"):
                    xid = f"/{plural}/{id}"
                    yield ListedGroup(
                        xid, self._comparable_group(xid, attributes_json, id), self._listed_resources(xid)
                    )
            except BrokenEntity as error:
                yield ListedGroup(f"/{plural}", error, iter(()))

    def _listed_resources(self, group: str) -> Iterator[tuple[str, ComparableResource | BrokenEntity | None]]:
        for name in self._group_type(group).resources:
            try:
                for id, listed_json in self._resources(f"{group}/{name}"):
                    xid = f"{group}/{name}/{id}"
                    listed = self._build_or_broken(xid, id, partial(self._listed_resource, xid, listed_json))
                    if not isinstance(listed, tuple):
                        yield xid, listed
                    elif self._last_hashes.get(xid) == listed[0]:
                        self._hashes[xid] = listed[0]
                        yield xid, None
                    elif (comparable := self._build_or_broken(xid, id, listed[1])) is not None:
                        self._hashes[xid] = listed[0]
                        yield xid, comparable
            except BrokenEntity as error:
                yield f"{group}/{name}", error

    def _listed_resource(self, xid: str, listed_json: Any) -> tuple[bytes, Callable[[], ComparableResource]] | None:
        """A hash of a Resource's listing and meta, and a function that reads it; None if it was deleted meanwhile."""
        if isinstance(listed_json, Mapping) and "meta" in listed_json and "versions" in listed_json:
            return content_hash(listed_json), partial(self._nested_resource, xid, listed_json)
        meta = self.responses.find_entity(f"{quote(xid)}/meta")
        return None if meta is None else (content_hash([listed_json, meta]), partial(self._resource, xid, meta))

    def _resource(self, xid: str, meta: Mapping[str, Any]) -> ComparableResource:
        return self._comparable_resource(xid, meta, () if "xref" in meta else self._collection(f"{xid}/versions"))

    def _comparable_resource(
        self, xid: str, meta: Mapping[str, Any], versions: Iterable[tuple[str, Any]]
    ) -> ComparableResource:
        type = self._type(xid)
        comparable_versions = [
            (id, self._comparable_version(f"{xid}/versions/{id}", attributes_json, type, id))
            for id, attributes_json in versions
        ]
        if not comparable_versions and "xref" not in meta:
            raise BrokenEntity("it has no Versions")
        return comparable_resource(meta, type, comparable_versions)

    def _comparable_group(self, xid: str, attributes_json: Any, id: str) -> ComparableGroup | BrokenEntity:
        return self._build_or_broken(xid, id, lambda: comparable_group(attributes_json, self._group_type(xid)))

    def _build_or_broken(self, xid: str, id: str, make_form: Callable[[], FormedT]) -> FormedT | BrokenEntity:
        """The result of `make_form`, or the error that explains why there is none. Raises: RemoteError."""
        try:
            check_id(id)
            return make_form()
        except BrokenEntity as error:
            return BrokenEntity(str(error), error.xid or xid)
        except RemoteError as error:
            if not is_about_entity(error):
                raise
            return BrokenEntity(str(error), xid)

    def _resources(self, path: str) -> Iterator[tuple[str, Any]]:
        """The Resources of a collection, with as much as a list can show."""
        if self._can_inline:
            try:
                yield from self._collection(path, _INLINE_QUERY)
                return
            except RemoteError as error:
                if error.status not in _NO_INLINE_STATUSES:
                    raise
                self._can_inline = False
        yield from self._collection(path)

    def _collection(self, path: str, query: str = "") -> Iterator[tuple[str, Any]]:
        """The members of a collection; empty if the server says that it has no such collection."""
        try:
            yield from self.responses.members(quote(path) + query)
        except RemoteError as error:
            if error.status != 404 or not error.problem:
                raise

    def _comparable_version(self, xid: str, attributes_json: Any, type: ResourceType, id: str) -> ComparableVersion:
        try:
            check_id(id)
            return comparable_version(attributes_json, type, self._content(xid, attributes_json, type))
        except BrokenEntity as error:
            raise BrokenEntity(str(error), xid) from None

    def _content(self, xid: str, attributes_json: Any, type: ResourceType) -> DocumentContent:
        """A Version's document, as far as it was sent with the Version."""
        if not type.hasdocument or not isinstance(attributes_json, dict) or attributes_json.get(f"{type.singular}url"):
            return NO_CONTENT
        encoded = attributes_json.get(f"{type.singular}base64")
        if encoded is not None:
            return DocumentContent.from_bytes(decode_base64(encoded))
        if type.singular in attributes_json:
            return DocumentContent(lambda: self._document(xid), value=attributes_json[type.singular])
        return DocumentContent(lambda: self._document(xid))

    def _document(self, xid: str) -> bytes:
        try:
            response = self._remote.request("GET", quote(xid))
        except RemoteError as error:
            if not is_about_entity(error):
                raise
            raise BrokenEntity(str(error), xid) from None
        if response.status_code == 303:
            raise BrokenEntity("its document is stored elsewhere, and the server answers 303", xid)
        if response.status_code != 200:
            raise RemoteError(f"GET {xid} answers {response.status_code}", response.status_code)
        return response.content

    def _group_type(self, xid: str) -> GroupType:
        return self.model.groups[xids.segments(xid)[0]]

    def _type(self, xid: str) -> ResourceType:
        return self._group_type(xid).resources[xids.segments(xid)[2]]
