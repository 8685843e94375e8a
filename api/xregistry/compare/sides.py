"""The two sides of a comparison: which Version, at which moment, with which document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, NamedTuple

from annals.api.http.query_params import QueryParams, invalid_param, single_value
from annals.api.xregistry.request.paths import PathKind, RequestTarget
from annals.commands.store.hashes import Interaction
from annals.domain import formats
from annals.domain.decisions.capabilities import INITIAL, EnabledFormats
from annals.domain.decisions.changes.documents import digest
from annals.domain.decisions.checks.document_checks import FormatCheck
from annals.domain.errors import problems
from annals.domain.errors.problems import BadRequest
from annals.domain.values import xid as xids
from annals.domain.values.json_text import loads
from annals.projections.entities.rows import EntityRow
from annals.projections.entities.view import View

#: The parameters of a side, by whether it is the left one: the Version and the moment.
_VERSION: Final = {True: "left", False: "right"}
_MOMENT: Final = {True: "leftasof", False: "rightasof"}
#: The format of a draft.
DRAFT_FORMAT: Final = "rightformat"
PARAMETERS: Final = (*_VERSION.values(), *_MOMENT.values())


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """One side. versionid: None for a draft. moment: the last interaction that its state includes."""

    versionid: str | None
    moment: Interaction
    document: FormatCheck


class _VersionThen(NamedTuple):
    """A Version at a moment."""

    row: EntityRow
    attributes: Mapping[str, Any]
    moment: Interaction


class SideReader:
    """Reads the sides that a request names.

    view: what its caller sees. target: a Resource with documents or one of its Versions. now: the latest moment.
    """

    def __init__(self, view: View, target: RequestTarget, parameters: QueryParams, now: datetime) -> None:
        self._view, self._target, self._now = view, target, now
        self._parameters = {name: value for name in parameters if (value := single_value(parameters, name))}
        row = view.entity(xids.CAPABILITIES)
        self._formats = EnabledFormats(loads(row.attributes) if row else INITIAL)
        if target.kind is PathKind.VERSION:
            for name in _VERSION.values():
                if name in self._parameters:
                    raise invalid_param(name, "the path is that of a Version, which is on both sides")

    def both(self) -> tuple[ComparedSide, ComparedSide]:
        """The left and the right side.

        Without any parameter, the default Version is compared with its ancestor; without Versions but with a moment,
        the default Version then with that at the other moment.
        Raises: NotFound for a Version that does not exist then; BadRequest for a moment that does not exist, and for a
        document that cannot be compared.
        """
        right = self._version(is_left=False)
        names_moment = any(name in self._parameters for name in _MOMENT.values())
        if _VERSION[True] in self._parameters or names_moment or self._target.kind is PathKind.VERSION:
            left = self._version(is_left=True)
        else:
            left = self._version(is_left=True, versionid=str(right.attributes["ancestorid"]))
        return self._side(left), self._side(right)

    def with_draft(self, content: bytes) -> tuple[ComparedSide, ComparedSide]:
        """A Version on the left, by default the default Version, and a draft on the right. Raises: see `both`."""
        left = self._side(self._version(is_left=True))
        format = self._parameters.get(DRAFT_FORMAT)
        document = FormatCheck(self._format(format) if format else left.document.format, digest(content))
        return left, ComparedSide(None, self._view.log.head(), document)

    def _version(self, *, is_left: bool, versionid: str | None = None) -> _VersionThen:
        moment_name = _MOMENT[is_left]
        moment, view = self._view.log.head(), self._view
        if (text := self._parameters.get(moment_name)) is not None:
            moment = view.log.as_of(text, self._now, moment_name)
            view = view.as_of(moment.last)
        versionid = self._parameters.get(_VERSION[is_left], versionid)
        if versionid is None:
            versionid = self._default_versionid(view)
        xid = self._target.xid
        if self._target.kind is not PathKind.VERSION:
            xid = xids.join(*xids.segments(xid), "versions", versionid)
        row = view.resolved_entity(xid)
        if row is None:
            raise problems.NotFound(xid)
        return _VersionThen(row, loads(row.attributes), moment)

    def _default_versionid(self, view: View) -> str:
        if self._target.kind is PathKind.VERSION:
            return ""
        row = view.resolved_entity(self._target.xid)
        if row is None:
            raise problems.NotFound(self._target.xid)
        versionid: str | None = loads(row.attributes).get("versionid")
        if versionid is None:
            raise BadRequest(error_detail=f"{self._target.xid} shows no Versions, because its xref has no target")
        return versionid

    def _side(self, version: _VersionThen) -> ComparedSide:
        """A Version as a side. Raises: BadRequest for a document that cannot be compared."""
        assert self._target.resource is not None, "only Resources with documents are compared"
        subject = f"the Version {version.row.xid}"
        if f"{self._target.resource.singular}url" in version.attributes:
            raise BadRequest(error_detail=f"{subject} has its document elsewhere, so there is nothing to compare")
        if version.row.document is None:
            raise BadRequest(error_detail=f"{subject} has no document, so there is nothing to compare")
        format = version.attributes.get("format")
        if not isinstance(format, str):
            raise BadRequest(error_detail=f'{subject} has no "format", so its document cannot be compared by meaning')
        return ComparedSide(version.row.id, version.moment, FormatCheck(self._format(format), version.row.document))

    def _format(self, name: str) -> str:
        """A format of documents that can be compared, in lower case. Raises: BadRequest."""
        format_module = formats.find_format(name)
        if format_module is None or not self._formats.is_validated(name):
            supported = ", ".join(sorted({one.names[0].partition("/")[0] for one in formats.FORMAT_MODULES}))
            detail = f'documents of "{name}" cannot be compared by meaning; those of these formats can: {supported}'
            raise BadRequest(error_detail=f"{detail}, where the capabilities enable them")
        return name.lower()
