"""`/-/findings`: findings of the rules beyond the model, for an entity or a collection and everything below it.

The findings are computed for each request, for now or for any moment (`asof`), so they always match the stored state. A
page shows the state at the time of its request; with `asof`, all pages show the same state.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Final

from starlette.types import Receive

from annals.api.audit.formats import ListWrapper, TableLayout
from annals.api.audit.request_params import AuditParams, parse_audit_params
from annals.api.audit.responses import TableContent, stream_table, subject_xid
from annals.api.http.methods import read_only_options
from annals.api.http.next_link import next_link
from annals.api.http.query_params import invalid_param, query_params, single_value
from annals.api.http.request import Request
from annals.api.http.response import Headers, Response
from annals.api.registry.open_registry import Registry
from annals.api.xregistry.request.paths import COLLECTION_KINDS, PathKind, resolve_path
from annals.api.xregistry.snapshot_tables import stream_table_as_of
from annals.api.xregistry.snapshots import Snapshots
from annals.commands.documents.document_checker import DocumentChecker
from annals.domain.decisions.changes.documents import digest
from annals.domain.decisions.checks.document_checks import FormatCheck
from annals.domain.errors import problems
from annals.domain.messaging.findings import L2, L3, Finding, SchemaCheck
from annals.domain.model import Model
from annals.domain.values import xid as xids
from annals.projections.entities.view import View
from annals.projections.messaging.findings import FindingCursor, LocatedFinding, read_findings

FINDINGS: Final = "findings"
#: The accepted parameters. Others are refused, because a misspelt filter would return more than intended.
PARAMETERS: Final = ("level", "rule", "after", "limit", "asof", "format")

_COMMON_PARAMETERS: Final = ("limit", "format")
_LEVELS: Final = (L2, L3)
_AFTER: Final = re.compile(r"([0-9]{1,9}):(/.*)\Z", re.DOTALL)
_CHECKED_KINDS: Final = frozenset(
    (*COLLECTION_KINDS, PathKind.REGISTRY, PathKind.GROUP, PathKind.RESOURCE, PathKind.META, PathKind.VERSION)
)
_FINDINGS_TABLE: Final[TableLayout[Finding]] = TableLayout(
    ("level", "rule", "xid", "path", "text"), asdict, lambda finding: (asdict(finding),)
)


@dataclass(frozen=True, slots=True)
class _FindingsRequest:
    """The parameters of a request. rules: empty for all."""

    audit_params: AuditParams
    level: str | None
    rules: frozenset[str]
    after: FindingCursor | None
    asof: str | None

    def accepts(self, finding: Finding) -> bool:
        """Whether a finding passes the filters."""
        return self.level in (None, finding.level) and (not self.rules or finding.rule in self.rules)


class FindingsRoutes:
    """The surface of `/-/findings`."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._definitions_cache = registry.definitions
        self._snapshots = Snapshots(registry.readers, self._definitions_cache, registry.store.clock)

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`.

        Raises: NotFound for an entity that does not exist, Forbidden, BadRequest, MethodNotAllowed.
        """
        if (options := read_only_options(request)) is not None:
            return options
        xid, findings_request = subject_xid(request), _parse_params(request)
        if findings_request.asof is None:
            return await stream_table(
                self._registry,
                request,
                findings_request.audit_params,
                lambda view: self._read_findings(
                    view, request, xid, findings_request, self._definitions_cache.current(view).model
                ),
            )
        # Another release of this program may find more, so findings about the past are not cached forever.
        snapshot = replace(await self._snapshots.find(findings_request.asof), is_immutable=False)
        return await stream_table_as_of(
            self._registry,
            request,
            findings_request.audit_params,
            snapshot,
            lambda view: self._read_findings(view, request, xid, findings_request, snapshot.definitions.model),
        )

    def _read_findings(
        self, full_view: View, request: Request, xid: str, findings_request: _FindingsRequest, model: Model
    ) -> TableContent:
        view = full_view.seen_by(request.caller, xid)
        _check_exists(view, request, xid, model)
        check, may_read = _schema_check(self._registry.checker), request.caller.can_read
        located_findings = (
            located_finding
            for located_finding in read_findings(view, xid, model, check, may_read, findings_request.after)
            if findings_request.accepts(located_finding.finding)
        )
        findings, links = _page(request, findings_request.audit_params.limit, located_findings)
        return TableContent(_FINDINGS_TABLE, findings, view.position(), ListWrapper({"xid": xid}, FINDINGS), links)


def _parse_params(request: Request) -> _FindingsRequest:
    """The parameters of a request. Raises: BadRequest."""
    parameters = query_params(request, PARAMETERS)
    level, rule, asof = (
        single_value(parameters, "level"),
        single_value(parameters, "rule"),
        single_value(parameters, "asof"),
    )
    if level is not None and level not in _LEVELS:
        raise invalid_param("level", f"it takes {' or '.join(_LEVELS)}")
    rules = frozenset(part.strip() for part in (rule or "").split(",")) - {""}
    return _FindingsRequest(
        parse_audit_params(request.query, _COMMON_PARAMETERS),
        level,
        rules,
        _parse_after(single_value(parameters, "after")),
        asof,
    )


def _parse_after(value: str | None) -> FindingCursor | None:
    if value is None:
        return None
    match = _AFTER.match(value)
    if match is None:
        raise invalid_param("after", "it takes what a link to the next page has")
    return FindingCursor(match[2], int(match[1]))


def _check_exists(view: View, request: Request, xid: str, model: Model) -> None:
    """Checks that the entity, or the collection's owner, exists. Raises: NotFound."""
    target = resolve_path(xids.segments(xid), model)
    owner = xids.parent(f"{xid}/-") or xids.REGISTRY if target.kind in COLLECTION_KINDS else target.row_xid
    if target.kind not in _CHECKED_KINDS or view.resolved_entity(owner) is None:
        raise problems.NotFound(xid)


def _schema_check(checker: DocumentChecker) -> SchemaCheck:
    """The check for inline schemas. The processes that check documents run it, once per document."""

    def check(name: str, document: bytes) -> str | None:
        format_check = FormatCheck(name.lower(), digest(document))
        violations = checker.check([format_check], lambda sha256: document)[format_check]
        return violations[0].text if violations else None

    return check


def _page(request: Request, limit: int | None, findings: Iterator[LocatedFinding]) -> tuple[Iterator[Finding], Headers]:
    """As many findings as the request asks for, or all without a limit; and the link to the next page."""
    if limit is None:
        return (located_finding.finding for located_finding in findings), []
    page = list(islice(findings, limit + 1))
    shown = (located_finding.finding for located_finding in page[:limit])
    if len(page) <= limit:
        return shown, []
    last = page[limit - 1].cursor
    return shown, [next_link(request, f"{last.number}:{last.xid}")]
