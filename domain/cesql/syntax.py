"""Expressions as trees, and trees as text.

Operators of one precedence that follow each other make one `OperatorChain`, and unary ones in a row make one
`UnaryOperation`. The depth of a tree is that of its parentheses times the few levels of precedence, however long the
expression is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeVar

from domain.cesql.values import CesqlValue

T = TypeVar("T")

#: Binary operators from the weakest precedence to the strongest; those of one row go from left to right (SUB-601). `IN`
#: and `LIKE` are stronger: with nothing but a set or a pattern to their right, they end a term.
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
    """A function, in upper case, of arguments. position: where in the text it is called; trees are equal without."""

    name: str
    arguments: tuple[SyntaxNode, ...]
    position: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FunctionCall) and (self.name, self.arguments) == (other.name, other.arguments)

    def __hash__(self) -> int:
        return hash((self.name, self.arguments))


@dataclass(frozen=True, slots=True)
class UnaryOperation:
    """`not` and `-`, the last of them the first to be applied."""

    operators: tuple[str, ...]
    operand: SyntaxNode


@dataclass(frozen=True, slots=True)
class BinaryStep:
    """A binary operator and what stands to its right."""

    operator: str
    operand: SyntaxNode


@dataclass(frozen=True, slots=True)
class LikeStep:
    """pattern: as the string literal has it."""

    pattern: str
    negated: bool


@dataclass(frozen=True, slots=True)
class InStep:
    """elements: one at least."""

    elements: tuple[SyntaxNode, ...]
    negated: bool


#: What follows an operand.
ChainStep = BinaryStep | LikeStep | InStep


@dataclass(frozen=True, slots=True)
class OperatorChain:
    """An operand and the steps that are taken from it, from left to right, all of one precedence."""

    first: SyntaxNode
    steps: tuple[ChainStep, ...]


SyntaxNode = LiteralValue | ContextAttribute | ExistsCheck | FunctionCall | UnaryOperation | OperatorChain


def child_nodes(node: SyntaxNode) -> Sequence[SyntaxNode]:
    """The trees directly within a tree, from left to right."""
    match node:
        case FunctionCall(arguments=arguments):
            return arguments
        case UnaryOperation(operand=operand):
            return (operand,)
        case OperatorChain(first=first, steps=steps):
            return (first, *(part for step in steps for part in _parts_of(step)))
    return ()


def _parts_of(step: ChainStep) -> Sequence[SyntaxNode]:
    match step:
        case BinaryStep(operand=operand):
            return (operand,)
        case InStep(elements=elements):
            return elements
    return ()


def walk(tree: SyntaxNode) -> Iterator[SyntaxNode]:
    """A tree and all trees within it."""
    waiting = [tree]
    while waiting:
        yield (node := waiting.pop())
        waiting.extend(child_nodes(node))


def fold(tree: SyntaxNode, make: Callable[[SyntaxNode, list[T]], T]) -> T:
    """What a tree comes to, made of what its parts come to. It needs no stack of calls, however deep the tree is."""
    waiting: list[tuple[SyntaxNode, int]] = [(tree, -1)]
    made: list[T] = []
    while waiting:
        node, count = waiting.pop()
        if count < 0:
            within = child_nodes(node)
            waiting.append((node, len(within)))
            waiting.extend((part, -1) for part in reversed(within))
        else:
            start = len(made) - count
            made[start:] = [make(node, made[start:])]
    return made[0]


def unparse(tree: SyntaxNode) -> str:
    """An expression that parses to the same tree."""
    return fold(tree, _text)


def _text(node: SyntaxNode, within: list[str]) -> str:
    match node:
        case LiteralValue(value=value):
            return _quoted(value) if isinstance(value, str) else str(value).upper()
        case ContextAttribute(name=name):
            return name
        case ExistsCheck(name=name):
            return f"EXISTS {name}"
        case FunctionCall(name=name):
            return f"{name}({', '.join(within)})"
        case UnaryOperation(operators=operators, operand=operand):
            inner = f"({within[0]})" if isinstance(operand, UnaryOperation | OperatorChain) else within[0]
            return f"{' '.join(operators).upper()} {inner}"
        case OperatorChain(first=first, steps=steps):
            texts, level = iter(within), _level(node)
            return " ".join((_operand(first, next(texts), level), *(_step(step, texts, level) for step in steps)))


def _step(step: ChainStep, texts: Iterator[str], level: int) -> str:
    match step:
        case BinaryStep(operator=operator, operand=operand):
            return f"{operator.upper()} {_operand(operand, next(texts), level)}"
        case LikeStep(pattern=pattern, negated=negated):
            return f"{'NOT ' * negated}LIKE {_quoted(pattern)}"
        case InStep(elements=elements, negated=negated):
            return f"{'NOT ' * negated}IN ({', '.join(islice(texts, len(elements)))})"


def _operand(node: SyntaxNode, text: str, level: int) -> str:
    """An operand of a chain; in parentheses unless it binds stronger."""
    return f"({text})" if isinstance(node, OperatorChain) and _level(node) <= level else text


def _level(chain: OperatorChain) -> int:
    step = chain.steps[0]
    return _LEVELS[step.operator] if isinstance(step, BinaryStep) else len(PRECEDENCE)


_LEVELS: Final = {operator: level for level, operators in enumerate(PRECEDENCE) for operator in operators}


def _quoted(value: str) -> str:
    """A string literal. A backslash and what follows it are one thing, which only the other quote can enclose."""
    quote = '"' if "\\'" in _ESCAPES.findall(value) else "'"
    return quote + re.sub(rf"(\\.)|{quote}", lambda each: each[1] or f"\\{quote}", value, flags=re.DOTALL) + quote


_ESCAPES: Final = re.compile(r"\\.", re.DOTALL)
