"""Collects stored entities that do not comply with a new model, for one error (MOD-93)."""

from __future__ import annotations

from typing import Final

from annals.domain.errors.problems import ModelComplianceError, Problem

#: The maximum number of entities that an error names; a longer list helps nobody.
MAX_NAMED: Final = 50


class StoredEntityErrors:
    """The errors of stored entities under a new model."""

    def __init__(self) -> None:
        self._errors: dict[str, str] = {}

    def add(self, xid: str, problem: Problem) -> None:
        """Adds one error. Raises: ModelComplianceError when the list is full."""
        self._errors[xid] = f"{xid}: {problem.text(xid)}"
        if len(self._errors) == MAX_NAMED:
            self.refuse()

    def refuse(self) -> None:
        """Raises: ModelComplianceError if there is any error."""
        if self._errors:
            detail = "; ".join(self._errors.values())
            raise ModelComplianceError(detail=detail, extensions={"entities": list(self._errors)})
