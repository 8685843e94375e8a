"""Stored entities that do not comply with a new model, all in one refusal (MOD-93)."""

from __future__ import annotations

from typing import Final

from domain.errors.problems import ModelComplianceError, Problem

#: As many are named in an error; more would help nobody.
MAX_NAMED: Final = 20


class StoredEntityErrors:
    """What stored entities have against a new model."""

    def __init__(self) -> None:
        self._found: list[str] = []

    def add(self, xid: str, problem: Problem) -> None:
        """Notes one. Raises: ModelComplianceError where no more of them would be named."""
        self._found.append(f"{xid}: {problem.text()}")
        if len(self._found) == MAX_NAMED:
            self.refuse()

    def refuse(self) -> None:
        """Raises: ModelComplianceError where there is any."""
        if self._found:
            raise ModelComplianceError(detail="; ".join(self._found))
