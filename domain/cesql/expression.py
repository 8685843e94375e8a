"""Expressions, compiled once to functions of an event.

What an evaluation costs is bounded: the steps of an expression when it is compiled, the text that functions and
patterns go through while it is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Final, Protocol, cast

from domain.cesql import like, operators, values
from domain.cesql.functions import apply, find
from domain.cesql.parser import parse
from domain.cesql.syntax import (
    LEVELS,
    Attribute,
    Binary,
    Call,
    Chain,
    Exists,
    In,
    Like,
    Literal,
    Node,
    Step,
    Unary,
    fold,
    nodes,
)
from domain.cesql.tokens import ParseError
from domain.cesql.values import DATA, REQUIRED, Error, Errored, Event, Outcome, Value, attribute

#: Steps of an expression: operators, calls, their arguments and the elements of sets. One evaluation takes each once.
STEPS: Final = 1000
#: Characters that functions and patterns go through in one evaluation. Patterns with `_` read a text one by one, which
#: takes as long as to read so many together, and longer for long patterns.
TEXT: Final = 1 << 21
_ONE_BY_ONE: Final = 128


class Source(Protocol):
    """What an evaluation reads."""

    def get(self, name: str, /) -> Value | None:
        """The value of an attribute."""

    def spend(self, characters: int) -> None:
        """Raises: TooMuchText when all of them together are too many."""


class TooMuchText(Exception):
    """An evaluation goes through more text than it may."""


class _Metered:
    """An event, and how much text may be gone through yet."""

    __slots__ = ("get", "left")

    def __init__(self, event: Event) -> None:
        self.get = event.get
        self.left = TEXT

    def spend(self, characters: int) -> None:
        self.left -= characters
        if self.left < 0:
            raise TooMuchText


#: A part of an expression, ready to be evaluated.
Run = Callable[[Source], Outcome]

_LOGIC: Final = frozenset(LEVELS[0])
_MISSING: Final = Errored(False, Error.MISSING_ATTRIBUTE)
_NO_FUNCTION: Final = Errored(False, Error.MISSING_FUNCTION)


@dataclass(frozen=True, slots=True)
class Result:
    """The value of an expression, and the errors that occurred in the order in which they did, each kind once."""

    value: Value
    errors: tuple[Error, ...] = ()

    @property
    def error(self) -> Error | None:
        """The first error."""
        return self.errors[0] if self.errors else None


@dataclass(frozen=True, slots=True)
class Expression:
    """An expression that can be evaluated. unknown: its calls of functions that there are not, name and arity."""

    text: str
    tree: Node
    unknown: tuple[Call, ...]
    _run: Run = field(repr=False, compare=False)
    _metered: bool = field(default=True, repr=False, compare=False)

    def evaluate(self, event: Event) -> Result:
        """What the expression is for an event. Never raises."""
        found = self._outcome(event)
        return Result(found.value, found.errors) if isinstance(found, Errored) else Result(found)

    def matches(self, event: Event) -> bool:
        """Whether the value is true as a Boolean, without any error (SUB-421)."""
        found = self._outcome(event)
        return found is True or (found is not False and operators.truth(found) is True)

    def _outcome(self, event: Event) -> Outcome:
        try:
            return self._run(cast(Source, _Metered(event) if self._metered else event))
        except TooMuchText:
            return _GENERIC
        except RecursionError:  # the caller has used up the stack: an expression needs 700 calls of it at most
            return _GENERIC


_GENERIC: Final = Errored(False, Error.GENERIC)


def compile(text: str) -> Expression:
    """The expression that a text means. Raises: ParseError, also for one of too many steps."""
    tree = parse(text)
    if sum(map(_steps, nodes(tree))) > STEPS:
        raise ParseError(f"an expression has at most {STEPS} operators, calls, arguments and elements", text, 0)
    unknown: list[Call] = []

    def make(node: Node, within: list[Run]) -> Run:
        if isinstance(node, Call) and find(node.name, len(node.arguments)) is None:
            unknown.append(node)
        return _compiled(node, within)

    run = fold(tree, make)
    metered = any(map(_takes_text, nodes(tree)))
    return Expression(text, tree, tuple(sorted(unknown, key=lambda call: call.position)), run, metered)


def _steps(node: Node) -> int:
    match node:
        case Call(arguments=arguments):
            return 1 + len(arguments)
        case Unary(operators=signs):
            return len(_needed(signs))
        case Chain(steps=steps):
            return sum(len(step.elements) if isinstance(step, In) else 1 for step in steps)
    return 0


def _takes_text(node: Node) -> bool:
    """Whether a node spends text: without any, an event needs no meter."""
    return isinstance(node, Call) or (isinstance(node, Chain) and any(isinstance(step, Like) for step in node.steps))


def _needed(signs: tuple[str, ...]) -> tuple[str, ...]:
    """Unary operators that do the same: an even number of equal ones does what two do, another what one does."""
    return tuple(sign for sign, run in groupby(signs) for _ in range(2 - sum(1 for _ in run) % 2))


def _compiled(node: Node, within: list[Run]) -> Run:
    match node:
        case Literal(value=value):
            return lambda _: value
        case Attribute(name=name):
            return _attribute(name)
        case Exists(name=name):
            return _exists(name)
        case Call(name=name):
            return _call(name, within)
        case Unary(operators=signs):
            return _unary(signs, within[0])
        case Chain(steps=(Binary(operator=operator), *_)) if operator in _LOGIC:
            return _logic([step.operator for step in node.steps if isinstance(step, Binary)], within)
        case Chain(steps=(Binary(operator=operator),)):
            return _binary(operator, *within)
        case Chain(steps=steps):
            return _chain(steps, within)


def _attribute(name: str) -> Run:
    if name == DATA:
        return lambda _: _MISSING

    def read(event: Source) -> Outcome:
        value = event.get(name)
        return value if type(value) is str else attribute(value, name)

    return read


def _exists(name: str) -> Run:
    if name == DATA:
        return lambda _: False
    return (lambda _: True) if name in REQUIRED else (lambda event: event.get(name) is not None)


def _call(name: str, arguments: list[Run]) -> Run:
    function = find(name, len(arguments))
    if function is None:
        return lambda _: _NO_FUNCTION

    def run(event: Source) -> Outcome:
        given = [argument(event) for argument in arguments]
        event.spend(sum(len(each) for each in given if type(each) is str))
        return apply(function, given)

    return run


def _unary(signs: tuple[str, ...], operand: Run) -> Run:
    ones = [operators.unary(sign) for sign in reversed(_needed(signs))]

    def run(event: Source) -> Outcome:
        value = operand(event)
        for one in ones:
            value = one(value)
        return value

    return run


def _binary(operator: str, left: Run, right: Run) -> Run:
    two = operators.BINARY[operator]
    return lambda event: two(left(event), right(event))


def _logic(names: list[str], within: list[Run]) -> Run:
    """`and`, `or` and `xor` in a row. What is decided by a left value leaves the right one alone (cesql 3.4.2)."""
    first, *others = within
    rest = [
        (operators.DECIDED.get(name), operators.LOGIC[name], other) for name, other in zip(names, others, strict=True)
    ]

    def run(event: Source) -> Outcome:
        value = first(event)
        for decided, function, other in rest:
            if value is True or value is False:
                if value is decided:
                    continue
                right = other(event)
                value = (
                    function.compute(value, right)
                    if right is True or right is False
                    else apply(function, (value, right))
                )
            elif decided is not None and operators.holds(value) is decided:
                value = operators.truth(value)
            else:
                value = apply(function, (value, other(event)))
        return value

    return run


def _chain(steps: tuple[Step, ...], within: list[Run]) -> Run:
    others: Iterator[Run] = iter(within)
    first = next(others)
    taken = []
    for step in steps:
        count = len(step.elements) if isinstance(step, In) else isinstance(step, Binary)
        taken.append(_step(step, list(islice(others, count))))
    if len(taken) == 1:
        only = taken[0]
        return lambda event: only(first(event), event)

    def run(event: Source) -> Outcome:
        value = first(event)
        for step in taken:
            value = step(value, event)
        return value

    return run


def _step(step: Step, within: list[Run]) -> Callable[[Outcome, Source], Outcome]:
    match step:
        case Binary(operator=operator):
            two, right = operators.BINARY[operator], within[0]
            return lambda value, event: two(value, right(event))
        case Like(pattern=pattern, negated=negated):
            return _like(like.parse(pattern), negated)
        case In(negated=negated):
            return _in(within, negated)


def _like(pattern: like.Pattern, negated: bool) -> Callable[[Outcome, Source], Outcome]:
    one = operators.like(like.matcher(pattern), negated)
    each = _ONE_BY_ONE + sum(map(len, pattern.segments)) // 8 if pattern.wild else 1

    def step(value: Outcome, event: Source) -> Outcome:
        if type(value) is str:
            event.spend(each * len(value))
        return one(value)

    return step


def _in(elements: list[Run], negated: bool) -> Callable[[Outcome, Source], Outcome]:
    """Whether a value is one of others, which are made into its type and looked at until one is equal (SUB-614)."""

    def step(value: Outcome, event: Source) -> Outcome:
        if isinstance(value, Errored):
            return Errored(False, *value.errors)
        failed: dict[Error, None] = {}
        found, kind = False, type(value)
        for element in elements:
            other = element(event)
            if isinstance(other, Errored):
                return Errored(False, *failed, *other.errors)
            if type(other) is not kind:
                other = values.cast(other, kind)
                if isinstance(other, Errored):
                    failed.update(dict.fromkeys(other.errors))
                    other = other.value
            if other == value:
                found = True
                break
        return Errored(found is not negated, *failed) if failed else found is not negated

    return step
