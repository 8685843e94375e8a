"""Whether two schemas are equal in all that restricts, however they are written and wherever they stand."""

from __future__ import annotations

from domain.formats.jsonschema.node import Node


class Sameness:
    """Answers, and remembers. Cost: linear in the smaller of two schemas, once for each pair."""

    def __init__(self) -> None:
        self._equal: set[tuple[int, int]] = set()
        self._different: set[tuple[int, int]] = set()

    def __call__(self, one: Node, other: Node) -> bool:
        """Whether two schemas are equal with everything below them; references count as what they lead to."""
        seen: set[tuple[int, int]] = set()
        waiting = [(one, other)]
        while waiting:
            left, right = waiting.pop()
            pair = (id(left), id(right))
            if left is right or pair in self._equal or pair in seen:
                continue
            if pair in self._different or left.own != right.own:
                self._different |= {pair, (id(one), id(other))}
                return False
            seen.add(pair)
            waiting.extend((a, b) for (_, a), (_, b) in zip(left.children(), right.children(), strict=True))
        self._equal |= seen
        return True
