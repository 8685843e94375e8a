"""Syntax trees of expressions.

Consecutive operators of one precedence form one `OperatorChain`, and consecutive unary ones form one `UnaryOperation`.
So the depth of a tree is at most the nesting of parentheses times the few precedence levels, even for long expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

from annals.domain.cesql.values import CesqlValue

T = TypeVar("T")

#: Binary operators from the weakest precedence to the strongest; those in one row are left-associative (SUB-601). `IN`
#: and `LIKE` are stronger: only a set or a pattern is to their right, so they end a term.
PRECEDENCE: Final = (
    ("and", "or", "xor"),
    ("=", "!=", "<>", "<", "<=", ">", ">="),
    ("+", "-"),
    ("*", "/", "%"),
)


@dataclass(frozen=True, slots=True)
class LiteralValue:
    """A String, an Integer or a Boolean."""

    value: CesqlValue

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LiteralValue) and type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


@dataclass(frozen=True, slots=True)
class ContextAttribute:
    """A context attribute, in lower case."""

    name: str


@dataclass(frozen=True, slots=True)
class ExistsCheck:
    """Whether an event has an attribute."""

    name: str


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of a function, named in upper case. position: of the call in the text; equality ignores it."""

    name: str
    arguments: tuple[SyntaxNode, ...]
    position: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionCall) and (self.name, self.arguments) == (other.name, other.arguments)

    def __hash__(self) -> int:
        return hash((self.name, self.arguments))


@dataclass(frozen=True, slots=True)
class UnaryOperation:
    """Operators `not` and `-`; the last one is applied first."""

    operators: tuple[str, ...]
    operand: SyntaxNode


@dataclass(frozen=True, slots=True)
class BinaryStep:
    """A binary operator and its right operand."""

    operator: str
    operand: SyntaxNode


@dataclass(frozen=True, slots=True)
class LikeStep:
    """A LIKE test. pattern: the content of the string literal."""

    pattern: str
    negated: bool


@dataclass(frozen=True, slots=True)
class InStep:
    """An IN test. elements: at least one."""

    elements: tuple[SyntaxNode, ...]
    negated: bool


#: The operators that can follow an operand.
ChainStep = BinaryStep | LikeStep | InStep


@dataclass(frozen=True, slots=True)
class OperatorChain:
    """An operand and the steps applied to it from left to right, all of one precedence."""

    first: SyntaxNode
    steps: tuple[ChainStep, ...]


SyntaxNode = LiteralValue | ContextAttribute | ExistsCheck | FunctionCall | UnaryOperation | OperatorChain


def child_nodes(node: SyntaxNode) -> Sequence[SyntaxNode]:
    """The direct children of a node, from left to right."""
    match node:
        case FunctionCall(arguments=arguments):
            return arguments
        case UnaryOperation(operand=operand):
            return (operand,)
        case OperatorChain(first=first, steps=steps):
            return (first, *(child for step in steps for child in _operands_of(step)))
    return ()


def _operands_of(step: ChainStep) -> Sequence[SyntaxNode]:
    match step:
        case BinaryStep(operand=operand):
            return (operand,)
        case InStep(elements=elements):
            return elements
    return ()


def walk(tree: SyntaxNode) -> Iterator[SyntaxNode]:
    """A node and all its descendants."""
    pending = [tree]
    while pending:
        yield (node := pending.pop())
        pending.extend(child_nodes(node))


def fold(tree: SyntaxNode, make: Callable[[SyntaxNode, list[T]], T]) -> T:
    """The result of a bottom-up computation: `make` gets each node with the results of its children. Not recursive."""
    pending: list[tuple[SyntaxNode, int]] = [(tree, -1)]
    results: list[T] = []
    while pending:
        node, count = pending.pop()
        if count < 0:
            children = child_nodes(node)
            pending.append((node, len(children)))
            pending.extend((child, -1) for child in reversed(children))
        else:
            start = len(results) - count
            results[start:] = [make(node, results[start:])]
    return results[0]
