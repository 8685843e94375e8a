"""Counts and logs requests that are refused because of who sends them, or from where (ACC-111, ACC-112).

Refused writes are kept as well, if the server has a table for them (ACC-116).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter

from annals.api.http.access_log.access_log import CURRENT_CALLER
from annals.api.http.access_log.rate_by_reason import RateByReason
from annals.api.http.access_log.route_templates import RouteTemplates
from annals.api.http.connections.trusted_proxies import TrustedProxies
from annals.api.http.problem_response import COMPAT, OWN_PREFIX, SUBSCRIPTIONS
from annals.api.http.request import Request
from annals.commands.store.clock import format_time, utc_now
from annals.domain.access.roles import Caller, group_of
from annals.domain.errors.http_errors import (
    CrossOrigin,
    Forbidden,
    ForbiddenDestination,
    MisdirectedRequest,
    TooManyAttempts,
    TooManyRequests,
)
from annals.domain.errors.problems import Problem
from annals.projections.access.denied_writes import DeniedWrite, DeniedWrites

_LOG: Final = logging.getLogger("annals.denials")

_MAX_CHARACTERS: Final = 1000
_MAX_METHOD_CHARACTERS: Final = 20
#: The statuses of refused writes that are kept.
_KEPT_STATUSES: Final = frozenset((401, 403, 404, 429))
#: The kinds of denials by problem.
_KINDS: Final[Mapping[type[Problem], str]] = {
    Forbidden: "forbidden",
    CrossOrigin: "cross_origin",
    ForbiddenDestination: "cross_origin",
    MisdirectedRequest: "host",
    TooManyAttempts: "rate",
    TooManyRequests: "rate",
}


#: The first segments of paths with an xid after the second segment.
_PREFIXES: Final = frozenset((OWN_PREFIX, "ui"))

#: Returns the xids of the Groups of which the path of a request may name one; none if it names no Group.
FindGroups = Callable[[Request], Collection[str]]


def _no_groups(request: Request) -> Collection[str]:
    """The FindGroups of a server without legacy APIs."""
    return ()


def _groups_of_path(request: Request) -> Collection[str]:
    """The Group that contains the entity of a path of the registry's own API, or of a page."""
    first = request.segments[0] if request.segments else ""
    names = request.segments[2:] if first in _PREFIXES else request.segments
    group = "" if not names or first == SUBSCRIPTIONS else group_of("/" + "/".join(names))
    return (group,) if group else ()


class DenialLog:
    """The denials of one process. No label, no line and no row has a credential.

    find_compat_groups: for paths of the legacy APIs. denied_writes: where refused writes are kept; None for nowhere.
    """

    def __init__(
        self,
        registry: CollectorRegistry,
        proxies: TrustedProxies,
        routes: RouteTemplates,
        find_compat_groups: FindGroups = _no_groups,
        denied_writes: DeniedWrites | None = None,
    ) -> None:
        self._find_compat_groups = find_compat_groups
        self._proxies = proxies
        self._routes = routes
        self._failures = Counter(
            "annals_auth_failures", "Credentials refused.", ("authenticator", "reason"), registry=registry
        )
        self._denials = Counter("annals_denied", "Requests denied, by why.", ("kind",), registry=registry)
        self._lines, self._rows = RateByReason(), RateByReason()
        self._denied_writes = denied_writes

    def add_failure(
        self, request: Request, authenticator: str, reason: str, message: str, known_name: str | None
    ) -> None:
        """Counts and logs a bad credential. authenticator: empty if none knows the credential.

        message: why; it quotes no secret of the credential. known_name: of the caller that was claimed, if one has it.
        """
        self._failures.labels(authenticator or "unknown", reason).inc()
        shown_reason = f"{authenticator or 'credential'}: {reason}"
        self._write(request, shown_reason, known_name, message)
        self._keep(request, 401, shown_reason, Caller(known_name or "", authenticator=authenticator))

    def add_missing(self, request: Request) -> None:
        """Keeps a write that needs a credential and has none. Neither counted nor logged: browsers begin like that."""
        self._keep(request, 401, "no credential", None)

    def add(self, request: Request, problem: Problem) -> None:
        """Counts and logs a request, if the problem is a denial."""
        caller = CURRENT_CALLER.get()
        kind = "hidden" if self._is_hidden(request, problem, caller) else _KINDS.get(type(problem))
        if kind is None:
            return
        self._denials.labels(kind).inc()
        reason = "hidden" if kind == "hidden" else problem.name
        self._write(request, reason, caller.name if caller is not None else None)
        self._keep(request, problem.status, reason, caller)

    def _is_hidden(self, request: Request, problem: Problem, caller: Caller | None) -> bool:
        """Whether a read has no answer because its caller does not see the Group.

        Whether the Group exists does not matter and is not looked up, as it does not for a write, which is 403
        (ACC-78): an answer to one that exists would take longer. The legacy APIs also read with POST.
        """
        if problem.status != 404 or caller is None or caller.sees_everything:
            return False
        is_compat = request.segments[:1] == (COMPAT,)
        if not is_compat and not request.is_read:
            return False
        groups = (self._find_compat_groups if is_compat else _groups_of_path)(request)
        return bool(groups) and not any(map(caller.can_read, groups))

    def _write(self, request: Request, reason: str, caller: str | None, message: str | None = None) -> None:
        left_out = self._lines.admit(reason)
        if left_out is None:
            return
        fields: dict[str, object] = {
            "address": self._proxies.client_address(request.scope),
            "method": request.method,
            "path": self._routes.describe(request)[1],
            "reason": reason,
        }
        more = {
            "caller": caller,
            "detail": message[:_MAX_CHARACTERS] if message else None,
            "left_out": left_out or None,
        }
        fields.update({name: value for name, value in more.items() if value is not None})
        _LOG.warning("request denied", extra=fields)

    def _keep(self, request: Request, status: int, reason: str, caller: Caller | None) -> None:
        if self._denied_writes is None or request.is_read or status not in _KEPT_STATUSES:
            return
        left_out = self._rows.admit(reason)
        if left_out is None:
            return
        name, authenticator, keyid = (caller.name, caller.authenticator, caller.keyid) if caller else ("", "", "")
        address, path = self._proxies.client_address(request.scope), self._routes.describe(request)[1]
        method = request.method[:_MAX_METHOD_CHARACTERS]
        self._denied_writes.note(
            DeniedWrite(
                format_time(utc_now()), address, method, path, status, reason, name, authenticator, keyid, left_out
            )
        )
