"""Renders Resources and Versions with inlined parts by inserting these and URLs into their stored text.

The fast JSON reader says which members there are; the text itself is cut where a member's name appears once. This costs
a quarter of splitting the text into members. A text that may have a name twice is left to the caller, which splits it.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from annals.api.xregistry.render.documents import ReadDocument, row_document_member
from annals.api.xregistry.render.render_options import VALIDATION_ATTRIBUTES, RenderOptions, self_suffix
from annals.api.xregistry.request.inline import InlineTree
from annals.domain.model import ResourceType
from annals.projections.entities.rows import EntityRow

_META_MEMBER: Final = ',"meta":'
_COUNT_MEMBER: Final = ',"versionscount":'
_DEFAULT_MEMBER: Final = ',"defaultversionid":"'
_VALIDATION_NAMES: Final = frozenset(VALIDATION_ATTRIBUTES)


class InlinedSplices:
    """Renders the Resources and Versions of one response. Methods return None for a row that has to be split."""

    def __init__(self, options: RenderOptions, documents: ReadDocument) -> None:
        self._options = options
        self._documents = documents
        # A document view of a filtered Resource says whether its default Version is among those that survive.
        self._is_possible = not (
            options.has_shortself or options.stated or (options.doc and options.filter_effects is not None)
        )

    def resource(self, row: EntityRow, type: ResourceType, inline: InlineTree) -> tuple[str, str] | None:
        """A Resource up to its Versions, which are left out with the closing brace, and the number of its Versions."""
        text, options = row.attributes, self._options
        ids = f'{{"{type.singular}id":"{row.id}"'
        meta_end = text.rfind(_COUNT_MEMBER)
        if not (self._is_possible and 0 < row.meta < meta_end and text.startswith(ids)):
            return None
        meta_text, default_members, document = "", "", ""
        if "meta" in inline:
            meta = self._meta(row, type, ids, text[row.meta + len(_META_MEMBER) : meta_end], inline)
            if meta is None:
                return None
            meta_text = _META_MEMBER + meta
        if not options.doc:
            ids_end = text.index('"', len(ids) + len(',"versionid":"')) + 1
            ids, default_members = text[:ids_end], text[ids_end : row.meta]
            if type.singular in inline:
                values = _parse(text)
                if values is None:
                    return None
                document = self._document(row, type, values)
        identity = f',"self":{options.reference(row.xid, self_suffix(type))},"xid":"{row.xid}"'
        metaurl = options.reference(f"{row.xid}/meta", is_included="meta" in inline)
        opening = f'{ids}{identity}{default_members}{document},"metaurl":{metaurl}{meta_text}'
        return opening, text[meta_end + len(_COUNT_MEMBER) : -1]

    def version(self, row: EntityRow, type: ResourceType, inline: InlineTree) -> str | None:
        """A Version."""
        text, options = row.attributes, self._options
        ids = f'{{"{type.singular}id":"{row.xid.split("/", 5)[4]}","versionid":"{row.id}"'
        if not self._is_possible or not text.startswith(ids) or (values := _parse(text)) is None:
            return None
        members: str | None = text[len(ids) : -1]
        if options.doc and not _VALIDATION_NAMES.isdisjoint(values):
            members = _without_validation(text[len(ids) : -1], values)
            if members is None:
                return None
        document = self._document(row, type, values) if type.singular in inline else ""
        url = options.reference(row.xid, self_suffix(type))
        return f'{ids},"self":{url},"xid":"{row.xid}"{members}{document}}}'

    def _meta(self, row: EntityRow, type: ResourceType, ids: str, text: str, inline: InlineTree) -> str | None:
        values = _parse(text)
        default = values.get("defaultversionid") if values is not None else None
        default_member = f'{_DEFAULT_MEMBER}{default}"'
        if not text.startswith(ids) or text.count(_DEFAULT_MEMBER) != 1 or default_member not in text:
            return None
        default_end = text.index(default_member) + len(default_member)
        xid, version_xid = f"{row.xid}/meta", f"{row.xid}/versions/{default}"
        default_url = self._options.reference(version_xid, self_suffix(type), "versions" in inline)
        return (
            f'{ids},"self":{self._options.reference(xid)},"xid":"{xid}"{text[len(ids) : default_end]}'
            f',"defaultversionurl":{default_url}{text[default_end:]}'
        )

    def _document(self, row: EntityRow, type: ResourceType, values: dict[str, Any]) -> str:
        if not type.hasdocument or f"{type.singular}url" in values:
            return ""
        contenttype = values.get("contenttype") if isinstance(values.get("contenttype"), str) else None
        name, value = row_document_member(row, type, contenttype, self._documents, self._options.binary)
        return f',"{name}":{value}'


def _parse(text: str) -> dict[str, Any] | None:
    """The members of an object whose numbers may be rounded; None if one of them is too large for that."""
    try:
        values: dict[str, Any] = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return values


def _without_validation(members: str, values: dict[str, Any]) -> str | None:
    """The text of an object's members without VALIDATION_ATTRIBUTES; None if one of their names is there twice."""
    for name in VALIDATION_ATTRIBUTES:
        if name in values:
            member = f',"{name}":{orjson.dumps(values[name]).decode()}'
            if not isinstance(values[name], (bool, str)) or members.count(f'"{name}":') != 1 or member not in members:
                return None
            members = members.replace(member, "")
    return members
