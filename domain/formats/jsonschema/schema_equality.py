"""Equality of two schemas: of all that restricts values, regardless of spelling and location."""

from __future__ import annotations

from annals.domain.formats.jsonschema.node import SchemaNode

#: Two nodes by identity.
NodePair = tuple[int, int]


class SchemaEquality:
    """Compares schemas and caches the results. Cost: linear in the smaller of two schemas, once per pair."""

    def __init__(self) -> None:
        self._equal: set[NodePair] = set()
        self._different: set[NodePair] = set()

    def __call__(self, first_schema: SchemaNode, other: SchemaNode) -> bool:
        """Whether two schemas are equal with everything below them; a reference counts as its target."""
        first = (id(first_schema), id(other))
        parents: dict[NodePair, NodePair | None] = {first: None}
        pending = [(first_schema, other)]
        while pending:
            left, right = pending.pop()
            pair = (id(left), id(right))
            if left is right or pair in self._equal:
                continue
            if pair in self._different or left.own != right.own:
                self._mark_different(pair, parents)
                return False
            for child_pair in zip(left.below, right.below, strict=True):
                name = (id(child_pair[0]), id(child_pair[1]))
                if name not in parents:
                    parents[name] = pair
                    pending.append(child_pair)
        self._equal.update(parents)
        return True

    def _mark_different(self, pair: NodePair | None, parents: dict[NodePair, NodePair | None]) -> None:
        """Marks a pair as different, and all pairs from which it was reached."""
        while pair is not None:
            self._different.add(pair)
            pair = parents[pair]
