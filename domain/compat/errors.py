"""What the older APIs refuse: with 409 whatever the state of the registry does not allow (LEG-211)."""

from __future__ import annotations

from typing import Final

from domain.errors import problems
from domain.errors.http_errors import HttpProblem
from domain.errors.problems import Problem


class Conflict(HttpProblem):
    """`conflict`, HTTP 409: what is stored does not go with what is asked."""

    name = "conflict"
    status = 409
    title = 'For "<subject>", what is stored does not go with this: <error_detail>.'


class InvalidDefinition(HttpProblem):
    """`invalid_definition`, HTTP 400: an attribute, a document or a URI breaks a rule, whatever is stored."""

    name = "invalid_definition"
    status = 400
    title = 'For "<subject>", "<name>" is not valid: <error_detail>.'


class NoSuchVersion(HttpProblem):
    """`no_such_version`, HTTP 404: nothing has this number."""

    name = "no_such_version"
    status = 404
    title = 'For "<subject>", there is no version <number>.'


#: What the registry refuses with another status because of what it holds; `removal` that is not reached and ids that
#: differ in case only are its BadRequests.
_STORED: Final = (
    problems.BadRequest,
    problems.Readonly,
    problems.ExtraXrefAttribute,
    problems.CompatibilityViolation,
    problems.CompatibilityUnknown,
    problems.FormatUnknown,
    problems.MultipleRoots,
    problems.SetdefaultversionstickyFalse,
)


def invalid_definition(name: str, reason: str, rule: str) -> Problem:
    """The refusal of one attribute or parameter, which names the rule that it breaks (LEG-211)."""
    return InvalidDefinition(name=name, error_detail=f"{reason} ({rule})")


def to_legacy_problem(problem: Problem) -> Problem:
    """A problem as an older API tells it: a Conflict where the registry's state is the reason (LEG-211, LEG-705)."""
    if not isinstance(problem, _STORED):
        return problem
    return Conflict(error_detail=problem.text(), detail=problem.detail, extensions=problem.extensions)
