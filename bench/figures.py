"""What a measurement comes to, as a value and as lines of a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

HEAD = ("What", "Store", "Size", "Measured", "Floor", "Ratio", "Wanted", "")


class Want(StrEnum):
    """Which side of its bound a ratio has to be on."""

    AT_LEAST = "at least"
    AT_MOST = "at most"


@dataclass(frozen=True, slots=True)
class Figure:
    """measured, floor: with their unit, for people. ratio: what is judged, in the unit of `bound`; None: it is not."""

    what: str
    store: str
    size: str
    measured: str
    floor: str
    ratio: float
    want: Want
    bound: float | None
    unit: str = ""

    @property
    def met(self) -> bool:
        """Whether the ratio is on the wanted side of its bound, if there is one."""
        if self.bound is None:
            return True
        return self.ratio >= self.bound if self.want is Want.AT_LEAST else self.ratio <= self.bound

    def cells(self) -> tuple[str, ...]:
        """The figure as the cells of its row, in the order of HEAD."""
        wanted = ("", "")
        if self.bound is not None:
            wanted = f"{self.want} {self.bound:g}{self.unit}", "met" if self.met else "missed"
        return (self.what, self.store, self.size, self.measured, self.floor, f"{self.ratio:.2f}{self.unit}", *wanted)


def markdown(figures: Iterable[Figure]) -> Iterator[str]:
    """The lines of a table."""
    yield _line(HEAD)
    yield _line("---" for _ in HEAD)
    yield from (_line(figure.cells()) for figure in figures)


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
