"""A form whose fields are members of a document, and the refusals of the API at these fields (UI-81)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from annals.api.ui.page_context import PageContext
from annals.api.ui.problem_page import ShownProblem, shown_problem
from annals.domain.errors.http_errors import InvalidMember
from annals.domain.errors.problems import Problem


@dataclass(frozen=True)
class MemberForm:
    """What was typed, and why it was refused. values: by the names of fields. names: labels by the names of fields.

    error_field: that the refusal is about; empty if it is about none.
    """

    names: Mapping[str, str]
    values: Mapping[str, str] = field(default_factory=dict)
    alert: ShownProblem | None = None
    error_field: str = ""

    @property
    def fields(self) -> Sequence[tuple[str, str]]:
        """Label and id of the field that the refusal is about."""
        return [(self.names[self.error_field], self.error_field)] if self.error_field else []

    def refused(self, page: PageContext, problem: Problem) -> MemberForm:
        """The form with a refusal of the API."""
        pointer = str(dict(problem.extensions or {}).get("pointer", "")) if isinstance(problem, InvalidMember) else ""
        name = pointer.split("/")[1] if "/" in pointer else ""
        error_field = name if name in self.names else ""
        return MemberForm(self.names, self.values, shown_problem(problem, page.asked), error_field)
