"""Counts and logs requests that are refused because of who sends them, or from where (ACC-111, ACC-112)."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from typing import Final

from prometheus_client import CollectorRegistry, Counter

from annals.api.http.access_log.access_log import CURRENT_CALLER
from annals.api.http.access_log.route_templates import RouteTemplates
from annals.api.http.connections.trusted_proxies import TrustedProxies
from annals.api.http.problem_response import OWN_PREFIX
from annals.api.http.request import Request
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

_LOG: Final = logging.getLogger("annals.denials")

#: Lines per second and reason; the next line says how many more there were.
MAX_LINES_PER_SECOND: Final = 10
_MAX_CHARACTERS: Final = 300
#: The kinds of denials by problem.
_KINDS: Final[Mapping[type[Problem], str]] = {
    Forbidden: "forbidden",
    CrossOrigin: "cross_origin",
    ForbiddenDestination: "cross_origin",
    MisdirectedRequest: "host",
    TooManyAttempts: "rate",
    TooManyRequests: "rate",
}


#: The first segments of paths whose second one is no id of a Group.
_OTHER_TREES: Final = frozenset(("compat", "subscriptions"))


def _is_hidden(request: Request, problem: Problem, caller: Caller | None) -> bool:
    """Whether a read has no answer because its caller does not see the Group.

    Whether the Group exists does not matter and is not looked up, as it does not for a write, which is 403 (ACC-78):
    an answer to one that exists would take longer.
    """
    if problem.status != 404 or not request.is_read or caller is None or caller.sees_everything:
        return False
    names = request.segments[2:] if request.segments[:1] == (OWN_PREFIX,) else request.segments
    group = "" if not names or names[0] in _OTHER_TREES else group_of("/" + "/".join(names))
    return bool(group) and not caller.can_read(group)


class DenialLog:
    """The denials of one process. No label and no line has a credential."""

    def __init__(self, registry: CollectorRegistry, proxies: TrustedProxies, routes: RouteTemplates) -> None:
        self._proxies = proxies
        self._routes = routes
        self._failures = Counter(
            "annals_auth_failures", "Credentials refused.", ("authenticator", "reason"), registry=registry
        )
        self._denials = Counter("annals_denied", "Requests denied, by why.", ("kind",), registry=registry)
        #: By reason: a second, its lines, and the denials since the last line that has been written.
        self._lines: dict[str, tuple[int, int, int]] = {}

    def add_failure(
        self, request: Request, authenticator: str, reason: str, message: str, known_name: str | None
    ) -> None:
        """Counts and logs a bad credential. authenticator: empty if none knows the credential.

        message: why; it quotes nothing of the credential. known_name: of the caller that was claimed, if one has it.
        """
        self._failures.labels(authenticator or "unknown", reason).inc()
        self._write(request, f"{authenticator or 'credential'}: {reason}", known_name, message)

    def add(self, request: Request, problem: Problem) -> None:
        """Counts and logs a request, if the problem is a denial."""
        caller = CURRENT_CALLER.get()
        kind = "hidden" if _is_hidden(request, problem, caller) else _KINDS.get(type(problem))
        if kind is None:
            return
        self._denials.labels(kind).inc()
        self._write(
            request, "hidden" if kind == "hidden" else problem.name, caller.name if caller is not None else None
        )

    def _write(self, request: Request, reason: str, caller: str | None, message: str | None = None) -> None:
        left_out = self._admit(reason)
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

    def _admit(self, reason: str) -> int | None:
        """How many denials had no line before this one; None if this one has none either."""
        now = int(time.monotonic())
        second, lines, left_out = self._lines.get(reason, (now, 0, 0))
        if second != now:
            lines = 0
        if lines >= MAX_LINES_PER_SECOND:
            self._lines[reason] = now, lines, left_out + 1
            return None
        self._lines[reason] = now, lines + 1, 0
        return left_out
