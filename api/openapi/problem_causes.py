"""Why requests are refused with each error type, and what to do then: for `/-/docs` and for the reference."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple


class ProblemCause(NamedTuple):
    """The explanation of one error type. Texts may contain `code`.

    past: what else helps for what has a past; empty for nothing.
    """

    cause: str
    cure: str
    past: str = ""

    @property
    def cures(self) -> str:
        """All that helps."""
        return f"{self.cure} {self.past}".rstrip()


@cache
def problem_causes() -> dict[str, ProblemCause]:
    """The explanations by name, from `causes.yaml`, in the order of that file."""
    import yaml  # late, because only `/-/docs` needs it

    table = yaml.safe_load(files("annals.api.openapi").joinpath("causes.yaml").read_bytes())
    return {name: ProblemCause(**row) for name, row in table.items()}
