"""Checks a document without writing it: against its format, and against stored Versions.

Spec: core 1.0-rc4, "formatvalidated Attribute", "compatibility Attribute".
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from annals.api.http.query_params import invalid_param
from annals.api.xregistry.checks.candidate import CandidateVersion, StoredVersion
from annals.api.xregistry.checks.request_params import CheckParams
from annals.api.xregistry.request.paths import RequestTarget
from annals.domain.decisions.capabilities import INITIAL, EnabledFormats
from annals.domain.decisions.changes.documents import digest
from annals.domain.decisions.checks.document_checks import FormatCheck
from annals.domain.decisions.rules import ancestry
from annals.domain.decisions.rules.compared_versions import ancestors_of, compares_all_ancestors
from annals.domain.decisions.rules.resource_checks import NO_RULE
from annals.domain.errors.problems import NotFound
from annals.domain.values import xid as xids
from annals.domain.values.json_text import loads
from annals.projections.entities.rows import EntityRow
from annals.projections.entities.view import View
from annals.projections.entities.xref import xref_of


def load_candidate(view: View, target: RequestTarget, content: bytes, params: CheckParams) -> CandidateVersion:
    """A document as a Version of a Resource. If the parameters have a format, the Resource need not exist.

    Raises: NotFound; BadRequest for a format or a rule that this registry cannot check.
    """
    row, enabled_formats = _resource_row(view, target.xid), _enabled_formats(view)
    if row is None and params.format is None:
        raise NotFound(target.xid, detail='a Resource that does not exist yet needs the parameter "format"')
    candidate = _candidate(target.xid, loads(row.attributes) if row else {}, content, params, enabled_formats)
    rule = candidate.rule
    if rule is not None and not enabled_formats.has_rule(candidate.document.format, rule):
        if params.rule:
            raise invalid_param("compatibility", f'"{params.rule}" cannot be checked for "{candidate.document.format}"')
        return replace(candidate, unchecked_reason=NO_RULE)
    if rule is None or row is None:
        return candidate
    url = f"{target.resource.singular}url" if target.resource else ""
    against, successors = _compared_versions(
        _stored_versions(view, row.xid, enabled_formats, url), params, rule, target.xid
    )
    return replace(candidate, against=against, successors=successors)


def _resource_row(view: View, xid: str) -> EntityRow | None:
    """The Resource, or the one that its xref shows; None if there is none."""
    row = view.entity(xid)
    return view.xref_target(row) if row and xref_of(row) else row


def _candidate(
    xid: str, attributes: Mapping[str, Any], content: bytes, params: CheckParams, enabled_formats: EnabledFormats
) -> CandidateVersion:
    """The document with its format and its rule. attributes: of the Resource. Raises: BadRequest."""
    format = _check_format(enabled_formats, params.format or attributes.get("format"))
    rule = params.rule or attributes.get("meta", {}).get("compatibility") or ""
    return CandidateVersion(xid, FormatCheck(format, digest(content)), rule.lower() or None)


def _enabled_formats(view: View) -> EnabledFormats:
    row = view.entity(xids.CAPABILITIES)
    return EnabledFormats(loads(row.attributes) if row else INITIAL)


def _check_format(enabled_formats: EnabledFormats, name: Any) -> str:
    """The name of an enabled format, in lower case. Raises: BadRequest."""
    if not isinstance(name, str):
        raise invalid_param("format", "it is needed")
    if not enabled_formats.is_validated(name):
        supported = ", ".join(enabled_formats.formats) or "nothing"
        raise invalid_param("format", f'"{name}" cannot be checked here; use one of: {supported}')
    return name.lower()


def _stored_versions(view: View, resource: str, enabled_formats: EnabledFormats, url: str) -> dict[str, StoredVersion]:
    """The Versions of a Resource by lower-case id.

    url: the attribute of Versions whose document is stored elsewhere.
    """
    stored_versions = {}
    for row in view.subtree(f"{resource}/versions"):
        attributes = loads(row.attributes)
        name = str(attributes.get("format", ""))
        is_validated = enabled_formats.is_validated(name) and url not in attributes
        document = FormatCheck(name.lower(), row.document)
        stored_versions[row.id.lower()] = StoredVersion(
            row.id, str(attributes["ancestorid"]), row.times.createdat, document, is_validated
        )
    return stored_versions


def _compared_versions(
    versions: Mapping[str, StoredVersion], params: CheckParams, rule: str, xid: str
) -> tuple[Sequence[StoredVersion], Sequence[StoredVersion]]:
    """The Versions that a document is compared with as with ancestors, nearest first, and as with successors.

    xid: of the Resource as the client knows it. Raises: NotFound.
    """
    all_ancestors = compares_all_ancestors(rule) if params.all_ancestors is None else params.all_ancestors

    def ancestor_of(version: StoredVersion) -> StoredVersion | None:
        return versions[version.ancestor.lower()] if version.ancestor != version.id else None

    if params.replaced is not None:
        [version] = _select_versions(versions, [params.replaced], xid)
        ancestors = ancestors_of(version, ancestor_of, all_ancestors=all_ancestors)
        return ancestors, _successors(versions, version, all_successors=all_ancestors)
    if params.versionids:
        return _select_versions(versions, params.versionids, xid), ()
    newest = _newest_version(versions)
    return [newest, *(ancestors_of(newest, ancestor_of, all_ancestors=True) if all_ancestors else ())], ()


def _select_versions(
    versions: Mapping[str, StoredVersion], version_ids: Sequence[str], xid: str
) -> list[StoredVersion]:
    for id in version_ids:
        if id.lower() not in versions:
            raise NotFound(f"{xid}/versions/{id}")
    return [versions[id.lower()] for id in version_ids]


def _newest_version(versions: Mapping[str, StoredVersion]) -> StoredVersion:
    """The newest Version, which would be the next one's ancestor."""
    # In the computed modes the Versions are one chain that ends at the newest; in `manual` mode this is the rule.
    newest = ancestry.newest_version("manual", [stored_version.lineage for stored_version in versions.values()])
    return versions[newest.id.lower()]


def _successors(
    versions: Mapping[str, StoredVersion], version: StoredVersion, *, all_successors: bool
) -> list[StoredVersion]:
    """The Versions with a Version as nearest ancestor, or as any ancestor."""
    children = defaultdict[str, list[StoredVersion]](list)
    for each in versions.values():
        if each.ancestor != each.id:
            children[each.ancestor.lower()].append(each)
    successors = [*children[version.id.lower()]]
    for each in successors if all_successors else ():
        successors += children[each.id.lower()]
    return successors
