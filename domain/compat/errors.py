"""Errors of the legacy APIs. They answer 409 where the state of the registry forbids a request (LEG-211)."""

from __future__ import annotations

from typing import Final

from annals.domain.errors import problems
from annals.domain.errors.http_errors import HttpProblem
from annals.domain.errors.problems import Problem


class Conflict(HttpProblem, status=409):
    """`conflict`, HTTP 409: the stored state does not allow the request."""

    title = 'For "<subject>", the stored state does not allow this: <error_detail>.'


class InvalidDefinition(HttpProblem):
    """`invalid_definition`, HTTP 400: an attribute, document or URI breaks a rule, independent of what is stored."""

    title = 'For "<subject>", "<name>" is not valid: <error_detail>.'


class NoSuchVersion(HttpProblem, status=404):
    """`no_such_version`, HTTP 404: no Version has this number."""

    title = 'For "<subject>", there is no version <number>.'


#: Problems that the registry raises with another status because of its stored state. BadRequest is among them: the
#: registry raises it for a `removal` that is not reached and for ids that differ in case only.
_CONFLICT_PROBLEMS: Final = (
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
    """The problem for one attribute or parameter; it names the rule that the value breaks (LEG-211)."""
    return InvalidDefinition(name=name, error_detail=f"{reason} ({rule})")


def to_legacy_problem(problem: Problem) -> Problem:
    """The problem that a legacy API returns: a Conflict where the stored state is the reason (LEG-211, LEG-705)."""
    if not isinstance(problem, _CONFLICT_PROBLEMS):
        return problem
    return Conflict(error_detail=problem.text(), detail=problem.detail, extensions=problem.extensions)
