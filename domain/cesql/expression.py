"""Expressions, compiled once to functions of an event."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from domain.cesql import like, operators
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
)
from domain.cesql.values import DATA, REQUIRED, Error, Errored, Event, Outcome, Value, attribute, cast

#: A part of an expression, ready to be evaluated.
Run = Callable[[Event], Outcome]

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
            return self._run(event)
        except RecursionError:  # the caller has used up the stack: an expression needs 700 calls of it at most
            return _GENERIC


_GENERIC: Final = Errored(False, Error.GENERIC)


def compile(text: str) -> Expression:
    """The expression that a text means. Raises: ParseError."""
    tree = parse(text)
    unknown: list[Call] = []

    def make(node: Node, within: list[Run]) -> Run:
        if isinstance(node, Call) and find(node.name, len(node.arguments)) is None:
            unknown.append(node)
        return _compiled(node, within)

    run = fold(tree, make)
    return Expression(text, tree, tuple(sorted(unknown, key=lambda call: call.position)), run)


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

    def read(event: Event) -> Outcome:
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
    return lambda event: apply(function, [argument(event) for argument in arguments])


def _unary(signs: tuple[str, ...], operand: Run) -> Run:
    ones = [operators.unary(sign) for sign in reversed(signs)]

    def run(event: Event) -> Outcome:
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

    def run(event: Event) -> Outcome:
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
    first, *others = within
    taken = []
    for step in steps:
        count = len(step.elements) if isinstance(step, In) else isinstance(step, Binary)
        taken.append(_step(step, others[:count]))
        del others[:count]
    if len(taken) == 1:
        only = taken[0]
        return lambda event: only(first(event), event)

    def run(event: Event) -> Outcome:
        value = first(event)
        for step in taken:
            value = step(value, event)
        return value

    return run


def _step(step: Step, within: list[Run]) -> Callable[[Outcome, Event], Outcome]:
    match step:
        case Binary(operator=operator):
            two, right = operators.BINARY[operator], within[0]
            return lambda value, event: two(value, right(event))
        case Like(pattern=pattern, negated=negated):
            one = operators.like(like.matcher(like.parse(pattern)), negated)
            return lambda value, _: one(value)
        case In(negated=negated):
            return _in(within, negated)


def _in(elements: list[Run], negated: bool) -> Callable[[Outcome, Event], Outcome]:
    """Whether a value is one of others, which are made into its type and looked at until one is equal (SUB-614)."""

    def step(value: Outcome, event: Event) -> Outcome:
        if isinstance(value, Errored):
            return Errored(False, *value.errors)
        failed: tuple[Error, ...] = ()
        found, kind = False, type(value)
        for element in elements:
            other = element(event)
            if isinstance(other, Errored):
                return Errored(False, *failed, *other.errors)
            if type(other) is not kind:
                other = cast(other, kind)
                if isinstance(other, Errored):
                    failed, other = failed + other.errors, other.value
            if other == value:
                found = True
                break
        return Errored(found is not negated, *failed) if failed else found is not negated

    return step
