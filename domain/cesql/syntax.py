"""Expressions as trees, and trees as text.

Operators of one precedence that follow each other make one `Chain`, and unary ones in a row one `Unary`. So a tree is
as deep as its parentheses are, times the few levels of precedence, however long the expression is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, TypeVar

from domain.cesql.values import Value

T = TypeVar("T")

#: Binary operators from the weakest precedence to the strongest; those of one row go from left to right (SUB-601). `IN`
#: and `LIKE` are stronger: with nothing but a set or a pattern to their right, they end a term.
LEVELS: Final = (
    ("and", "or", "xor"),
    ("=", "!=", "<>", "<", "<=", ">", ">="),
    ("+", "-"),
    ("*", "/", "%"),
)


@dataclass(frozen=True, slots=True)
class Literal:
    """A String, an Integer or a Boolean."""

    value: Value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


@dataclass(frozen=True, slots=True)
class Attribute:
    """A context attribute, in lower case."""

    name: str


@dataclass(frozen=True, slots=True)
class Exists:
    """Whether an event has an attribute."""

    name: str


@dataclass(frozen=True, slots=True)
class Call:
    """A function, in upper case, of arguments. position: where in the text it is called; trees are equal without."""

    name: str
    arguments: tuple[Node, ...]
    position: int = 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Call) and (self.name, self.arguments) == (other.name, other.arguments)

    def __hash__(self) -> int:
        return hash((self.name, self.arguments))


@dataclass(frozen=True, slots=True)
class Unary:
    """`not` and `-`, the last of them the first to be applied."""

    operators: tuple[str, ...]
    operand: Node


@dataclass(frozen=True, slots=True)
class Binary:
    """A binary operator and what stands to its right."""

    operator: str
    operand: Node


@dataclass(frozen=True, slots=True)
class Like:
    """pattern: as the string literal has it."""

    pattern: str
    negated: bool


@dataclass(frozen=True, slots=True)
class In:
    """elements: one at least."""

    elements: tuple[Node, ...]
    negated: bool


#: What follows an operand.
Step = Binary | Like | In


@dataclass(frozen=True, slots=True)
class Chain:
    """An operand and the steps that are taken from it, from left to right, all of one precedence."""

    first: Node
    steps: tuple[Step, ...]


Node = Literal | Attribute | Exists | Call | Unary | Chain


def parts(node: Node) -> Sequence[Node]:
    """The trees directly within a tree, from left to right."""
    match node:
        case Call(arguments=arguments):
            return arguments
        case Unary(operand=operand):
            return (operand,)
        case Chain(first=first, steps=steps):
            return (first, *(part for step in steps for part in _parts_of(step)))
    return ()


def _parts_of(step: Step) -> Sequence[Node]:
    match step:
        case Binary(operand=operand):
            return (operand,)
        case In(elements=elements):
            return elements
    return ()


def nodes(tree: Node) -> Iterator[Node]:
    """A tree and all trees within it."""
    waiting = [tree]
    while waiting:
        yield (node := waiting.pop())
        waiting.extend(parts(node))


def fold(tree: Node, make: Callable[[Node, list[T]], T]) -> T:
    """What a tree comes to, made of what its parts come to. It needs no stack of calls, however deep the tree is."""
    waiting: list[tuple[Node, int]] = [(tree, -1)]
    made: list[T] = []
    while waiting:
        node, count = waiting.pop()
        if count < 0:
            within = parts(node)
            waiting.append((node, len(within)))
            waiting.extend((part, -1) for part in reversed(within))
        else:
            start = len(made) - count
            made[start:] = [make(node, made[start:])]
    return made[0]


def text(tree: Node) -> str:
    """An expression that parses to the same tree."""
    return fold(tree, _text)


def _text(node: Node, within: list[str]) -> str:
    match node:
        case Literal(value=value):
            return _quoted(value) if isinstance(value, str) else str(value).upper()
        case Attribute(name=name):
            return name
        case Exists(name=name):
            return f"EXISTS {name}"
        case Call(name=name):
            return f"{name}({', '.join(within)})"
        case Unary(operators=operators, operand=operand):
            inner = f"({within[0]})" if isinstance(operand, Unary | Chain) else within[0]
            return f"{' '.join(operators).upper()} {inner}"
        case Chain(first=first, steps=steps):
            texts, level = iter(within), _level(node)
            return " ".join((_operand(first, next(texts), level), *(_step(step, texts, level) for step in steps)))


def _step(step: Step, texts: Iterator[str], level: int) -> str:
    match step:
        case Binary(operator=operator, operand=operand):
            return f"{operator.upper()} {_operand(operand, next(texts), level)}"
        case Like(pattern=pattern, negated=negated):
            return f"{'NOT ' * negated}LIKE {_quoted(pattern)}"
        case In(elements=elements, negated=negated):
            return f"{'NOT ' * negated}IN ({', '.join(islice(texts, len(elements)))})"


def _operand(node: Node, text: str, level: int) -> str:
    """An operand of a chain; in parentheses unless it binds stronger."""
    return f"({text})" if isinstance(node, Chain) and _level(node) <= level else text


def _level(chain: Chain) -> int:
    step = chain.steps[0]
    return _LEVELS[step.operator] if isinstance(step, Binary) else len(LEVELS)


_LEVELS: Final = {operator: level for level, operators in enumerate(LEVELS) for operator in operators}


def _quoted(value: str) -> str:
    """A string literal. A backslash and what follows it are one thing, which only the other quote can enclose."""
    quote = '"' if "\\'" in _ESCAPES.findall(value) else "'"
    return quote + re.sub(rf"(\\.)|{quote}", lambda each: each[1] or f"\\{quote}", value, flags=re.DOTALL) + quote


_ESCAPES: Final = re.compile(r"\\.", re.DOTALL)
