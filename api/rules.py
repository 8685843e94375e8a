"""What a request has to keep to before anything is read or written: availability and methods."""

from __future__ import annotations

from api.capabilities import Capabilities
from api.paths import METHODS, Target, allowed, area
from api.request import READS, Request
from domain import problems
from domain.problems import Problem


class NotAllowed(Exception):
    """A problem whose answer names the methods that are allowed."""

    def __init__(self, problem: Problem, allow: str) -> None:
        super().__init__(problem.text())
        self.problem = problem
        self.allow = allow


def check_request(request: Request, target: Target, capabilities: Capabilities) -> None:
    """Raises: NotAvailable for what is switched off, NotAllowed for a method that the path does not take now."""
    if area(target.kind) not in capabilities.available:
        raise problems.NotAvailable(f"/{area(target.kind)}")
    if request.method in READS:
        return
    if request.method not in METHODS[target.kind] or not capabilities.available[area(target.kind)]:
        problem = problems.ActionNotSupported(action=request.method)
        raise NotAllowed(problem, allowed(target.kind, capabilities))
    if request.method == "PATCH" and target.document:
        methods = allowed(target.kind, capabilities).replace(", PATCH", "")
        raise NotAllowed(problems.DetailsRequired(target.xid), methods)
