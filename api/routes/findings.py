"""`/-/findings`: what the rules beyond the model find in an entity or a collection and all below it.

It is worked out as it is read, of now or of any moment (`asof`), so it is always true to what is stored. A page shows
what is there when it is asked for; `asof` keeps pages of one moment together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from itertools import islice
from typing import Final
from urllib.parse import quote, unquote_plus

from starlette.types import Receive

from api import conditional
from api.answer import Answer, Headers
from api.audit.answers import Listed, streamed, subject
from api.audit.asked import Asked
from api.audit.asked import asked as common
from api.audit.forms import Around, Table
from api.feeds.asked import parameters, refused, single
from api.moments import Moments, Then
from api.paths import COLLECTIONS, Kind, locate
from api.request import Request
from api.rules import options_of_reads
from api.wiring import Registry
from commands.checks import Checker
from domain import problems
from domain import xid as xids
from domain.checks import Document
from domain.documents import digest
from domain.findings import L2, L3, Check, Finding
from domain.model import Model
from projections.entities.query import View
from projections.findings import Found, Place, found

FINDINGS: Final = "findings"
#: The parameters that are understood; others are refused, because what was meant to narrow would widen.
PARAMETERS: Final = ("level", "rule", "after", "limit", "asof", "format")

_SHARED: Final = ("limit", "format")
_LEVELS: Final = (L2, L3)
_AFTER: Final = re.compile(r"([0-9]{1,9}):(/.*)\Z", re.DOTALL)
_KINDS: Final = frozenset((*COLLECTIONS, Kind.REGISTRY, Kind.GROUP, Kind.RESOURCE, Kind.META, Kind.VERSION))
_TABLE: Final[Table[Finding]] = Table(
    ("level", "rule", "xid", "path", "text"), asdict, lambda finding: (asdict(finding),)
)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What a request asks for. rules: empty for all."""

    common: Asked
    level: str | None
    rules: frozenset[str]
    after: Place | None
    asof: str | None

    def has(self, finding: Finding) -> bool:
        """Whether a finding is to be listed."""
        return self.level in (None, finding.level) and (not self.rules or finding.rule in self.rules)


class Findings:
    """The surface of `/-/findings`."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._latest = registry.latest
        self._moments = Moments(registry.readers, self._latest, registry.store.clock)

    async def answer(self, request: Request, receive: Receive) -> Answer:
        """See `front.Surface`. Raises: NotFound for what is not there, Forbidden, BadRequest, NotAllowed."""
        if (options := options_of_reads(request)) is not None:
            return options
        xid, wanted = subject(request), _wanted(request)
        if wanted.asof is None:
            return await streamed(
                self._registry,
                request,
                wanted.common,
                lambda view: self._look(view, request, xid, wanted, self._latest.current(view).model),
            )
        return await self._then(request, xid, wanted, await self._moments.find(wanted.asof))

    async def _then(self, request: Request, xid: str, wanted: _Wanted, then: Then) -> Answer:
        if then.position == 0:
            raise problems.NotFound(request.path)
        # Another release of this program may find more, so that even the past is asked about again.
        then = replace(then, closed=False)

        def look(view: View) -> Listed:
            return self._look(then.seen(view), request, xid, wanted, then.definitions.model)

        try:
            return then.told(await streamed(self._registry, request, wanted.common, look), request)
        except conditional.Unchanged as unchanged:
            return then.told(conditional.not_modified(request, unchanged), request)

    def _look(self, view: View, request: Request, xid: str, wanted: _Wanted, model: Model) -> Listed:
        _check_there(view, request, xid, model)
        check, reads = _checks(self._registry.checker), request.caller.reads
        each = (one for one in found(view, xid, model, check, reads, wanted.after) if wanted.has(one.finding))
        things, links = _page(request, wanted.common.limit, each)
        return Listed(_TABLE, things, view.position(), Around({"xid": xid}, FINDINGS), links)


def _wanted(request: Request) -> _Wanted:
    """What a request asks for. Raises: BadRequest."""
    given = parameters(request, PARAMETERS)
    level, rule, asof = single(given, "level"), single(given, "rule"), single(given, "asof")
    if level is not None and level not in _LEVELS:
        raise refused("level", f"it takes {' or '.join(_LEVELS)}")
    rules = frozenset(part.strip() for part in (rule or "").split(",")) - {""}
    return _Wanted(common(request.query, _SHARED), level, rules, _after(single(given, "after")), asof)


def _after(value: str | None) -> Place | None:
    if value is None:
        return None
    parsed = _AFTER.match(value)
    if parsed is None:
        raise refused("after", "it takes what a link to the next page has")
    return Place(parsed[2], int(parsed[1]))


def _check_there(view: View, request: Request, xid: str, model: Model) -> None:
    """Raises: NotFound."""
    target = locate(xids.segments(xid), model)
    owner = xids.parent(f"{xid}/-") or xids.REGISTRY if target.kind in COLLECTIONS else target.owner
    if target.kind not in _KINDS or view.shown(owner) is None:
        raise problems.NotFound(xid)


def _checks(checker: Checker) -> Check:
    """What judges inline schemas: in the processes that check documents, each document once."""

    def check(name: str, document: bytes) -> str | None:
        question = Document(name.lower(), digest(document))
        verdict = checker.answers([question], lambda sha256: document)[question]
        return verdict[0].text if verdict else None

    return check


def _page(request: Request, limit: int | None, each: Iterator[Found]) -> tuple[Iterator[Finding], Headers]:
    """As many findings as the request wants, all of them without a limit, and the link to the next page."""
    if limit is None:
        return (one.finding for one in each), []
    listed = list(islice(each, limit + 1))
    links = [_next(request, listed[limit - 1].place)] if len(listed) > limit else []
    return (one.finding for one in listed[:limit]), links


def _next(request: Request, place: Place) -> tuple[bytes, bytes]:
    parts = request.query.decode("latin-1").split("&")
    kept = [part for part in parts if part and unquote_plus(part.partition("=")[0]) != "after"]
    after = f"after={quote(f'{place.number}:{place.xid}', safe='')}"
    path = quote(xids.join(*request.segments), safe="/:@$~!*'(),;=&+")
    return b"link", f"<{request.base}{path}?{'&'.join([*kept, after])}>;rel=next".encode("latin-1")
