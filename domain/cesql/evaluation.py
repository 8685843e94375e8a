"""Expressions, compiled once to functions of an event.

What an evaluation costs is bounded: the steps of an expression when it is compiled, the text that functions and
patterns go through while it is evaluated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Final, Protocol, cast

from domain.cesql import like_pattern, operators, values
from domain.cesql.functions import apply_function, find_function
from domain.cesql.parser import parse
from domain.cesql.syntax import (
    PRECEDENCE,
    BinaryStep,
    ChainStep,
    ContextAttribute,
    ExistsCheck,
    FunctionCall,
    InStep,
    LikeStep,
    LiteralValue,
    OperatorChain,
    SyntaxNode,
    UnaryOperation,
    fold,
    walk,
)
from domain.cesql.tokenizer import ParseError
from domain.cesql.values import (
    DATA_MEMBER,
    REQUIRED_ATTRIBUTES,
    CesqlValue,
    ContextAttributes,
    ErrorKind,
    ErrorValue,
    ValueOrError,
    attribute_value,
)

#: Steps of an expression: operators, calls, their arguments and the elements of sets. One evaluation takes each once.
MAX_STEPS: Final = 1000
#: Characters that functions and patterns go through in one evaluation. Patterns with `_` read a text one by one, which
#: takes as long as to read so many together, and longer for long patterns.
MAX_TEXT: Final = 1 << 21
_ONE_BY_ONE: Final = 128


class EvaluationContext(Protocol):
    """What an evaluation reads."""

    def get(self, name: str, /) -> CesqlValue | None:
        """The value of an attribute."""

    def spend(self, characters: int) -> None:
        """Raises: TooMuchText when all of them together are too many."""


class TooMuchText(Exception):
    """An evaluation goes through more text than it may."""


class _MeteredEvent:
    """An event, and how much text may be gone through yet."""

    __slots__ = ("get", "left")

    def __init__(self, event: ContextAttributes) -> None:
        self.get = event.get
        self.left = MAX_TEXT

    def spend(self, characters: int) -> None:
        self.left -= characters
        if self.left < 0:
            raise TooMuchText


#: A part of an expression, ready to be evaluated.
Evaluator = Callable[[EvaluationContext], ValueOrError]

_LOGIC: Final = frozenset(PRECEDENCE[0])
_MISSING: Final = ErrorValue(False, ErrorKind.MISSING_ATTRIBUTE)
_NO_FUNCTION: Final = ErrorValue(False, ErrorKind.MISSING_FUNCTION)


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """The value of an expression, and the errors that occurred in the order in which they did, each kind once."""

    value: CesqlValue
    errors: tuple[ErrorKind, ...] = ()

    @property
    def error(self) -> ErrorKind | None:
        """The first error."""
        return self.errors[0] if self.errors else None


@dataclass(frozen=True, slots=True)
class CesqlExpression:
    """An expression that can be evaluated. unknown: its calls of functions that there are not, name and arity."""

    text: str
    tree: SyntaxNode
    unknown: tuple[FunctionCall, ...]
    _run: Evaluator = field(repr=False, compare=False)
    _metered: bool = field(default=True, repr=False, compare=False)

    def evaluate(self, event: ContextAttributes) -> EvaluationResult:
        """What the expression is for an event. Never raises."""
        found = self._outcome(event)
        return EvaluationResult(found.value, found.errors) if isinstance(found, ErrorValue) else EvaluationResult(found)

    def matches(self, event: ContextAttributes) -> bool:
        """Whether the value is true as a Boolean, without any error (SUB-421)."""
        found = self._outcome(event)
        return found is True or (found is not False and operators.to_boolean(found) is True)

    def _outcome(self, event: ContextAttributes) -> ValueOrError:
        try:
            return self._run(cast(EvaluationContext, _MeteredEvent(event) if self._metered else event))
        except TooMuchText:
            return _GENERIC
        except RecursionError:  # the caller has used up the stack: an expression needs 700 calls of it at most
            return _GENERIC


_GENERIC: Final = ErrorValue(False, ErrorKind.GENERIC)


def compile_expression(text: str) -> CesqlExpression:
    """The expression that a text means. Raises: ParseError, also for one of too many steps."""
    tree = parse(text)
    if sum(map(_steps, walk(tree))) > MAX_STEPS:
        raise ParseError(f"an expression has at most {MAX_STEPS} operators, calls, arguments and elements", text, 0)
    unknown: list[FunctionCall] = []

    def make(node: SyntaxNode, within: list[Evaluator]) -> Evaluator:
        if isinstance(node, FunctionCall) and find_function(node.name, len(node.arguments)) is None:
            unknown.append(node)
        return _evaluator(node, within)

    run = fold(tree, make)
    metered = any(map(_takes_text, walk(tree)))
    return CesqlExpression(text, tree, tuple(sorted(unknown, key=lambda call: call.position)), run, metered)


def _steps(node: SyntaxNode) -> int:
    match node:
        case FunctionCall(arguments=arguments):
            return 1 + len(arguments)
        case UnaryOperation(operators=signs):
            return len(_reduced_signs(signs))
        case OperatorChain(steps=steps):
            return sum(len(step.elements) if isinstance(step, InStep) else 1 for step in steps)
    return 0


def _takes_text(node: SyntaxNode) -> bool:
    """Whether a node spends text: without any, an event needs no meter."""
    return isinstance(node, FunctionCall) or (
        isinstance(node, OperatorChain) and any(isinstance(step, LikeStep) for step in node.steps)
    )


def _reduced_signs(signs: tuple[str, ...]) -> tuple[str, ...]:
    """Unary operators that do the same: an even number of equal ones does what two do, another what one does."""
    return tuple(sign for sign, run in groupby(signs) for _ in range(2 - sum(1 for _ in run) % 2))


def _evaluator(node: SyntaxNode, within: list[Evaluator]) -> Evaluator:
    match node:
        case LiteralValue(value=value):
            return lambda _: value
        case ContextAttribute(name=name):
            return _attribute(name)
        case ExistsCheck(name=name):
            return _exists(name)
        case FunctionCall(name=name):
            return _call(name, within)
        case UnaryOperation(operators=signs):
            return _unary(signs, within[0])
        case OperatorChain(steps=(BinaryStep(operator=operator), *_)) if operator in _LOGIC:
            return _logic([step.operator for step in node.steps if isinstance(step, BinaryStep)], within)
        case OperatorChain(steps=(BinaryStep(operator=operator),)):
            return _binary(operator, *within)
        case OperatorChain(steps=steps):
            return _chain(steps, within)


def _attribute(name: str) -> Evaluator:
    if name == DATA_MEMBER:
        return lambda _: _MISSING

    def read(event: EvaluationContext) -> ValueOrError:
        value = event.get(name)
        return value if type(value) is str else attribute_value(value, name)

    return read


def _exists(name: str) -> Evaluator:
    if name == DATA_MEMBER:
        return lambda _: False
    return (lambda _: True) if name in REQUIRED_ATTRIBUTES else (lambda event: event.get(name) is not None)


def _call(name: str, arguments: list[Evaluator]) -> Evaluator:
    function = find_function(name, len(arguments))
    if function is None:
        return lambda _: _NO_FUNCTION

    def run(event: EvaluationContext) -> ValueOrError:
        given = [argument(event) for argument in arguments]
        event.spend(sum(len(each) for each in given if type(each) is str))
        return apply_function(function, given)

    return run


def _unary(signs: tuple[str, ...], operand: Evaluator) -> Evaluator:
    ones = [operators.unary_function(sign) for sign in reversed(_reduced_signs(signs))]

    def run(event: EvaluationContext) -> ValueOrError:
        value = operand(event)
        for one in ones:
            value = one(value)
        return value

    return run


def _binary(operator: str, left: Evaluator, right: Evaluator) -> Evaluator:
    two = operators.BINARY[operator]
    return lambda event: two(left(event), right(event))


def _logic(names: list[str], within: list[Evaluator]) -> Evaluator:
    """`and`, `or` and `xor` in a row. What is decided by a left value leaves the right one alone (cesql 3.4.2)."""
    first, *others = within
    rest = [
        (operators.SHORT_CIRCUITS.get(name), operators.LOGIC[name], other)
        for name, other in zip(names, others, strict=True)
    ]

    def run(event: EvaluationContext) -> ValueOrError:
        value = first(event)
        for decided, function, other in rest:
            if value is True or value is False:
                if value is decided:
                    continue
                right = other(event)
                value = (
                    function.compute(value, right)
                    if right is True or right is False
                    else apply_function(function, (value, right))
                )
            elif decided is not None and operators.is_true(value) is decided:
                value = operators.to_boolean(value)
            else:
                value = apply_function(function, (value, other(event)))
        return value

    return run


def _chain(steps: tuple[ChainStep, ...], within: list[Evaluator]) -> Evaluator:
    others: Iterator[Evaluator] = iter(within)
    first = next(others)
    taken = []
    for step in steps:
        count = len(step.elements) if isinstance(step, InStep) else isinstance(step, BinaryStep)
        taken.append(_step(step, list(islice(others, count))))
    if len(taken) == 1:
        only = taken[0]
        return lambda event: only(first(event), event)

    def run(event: EvaluationContext) -> ValueOrError:
        value = first(event)
        for step in taken:
            value = step(value, event)
        return value

    return run


def _step(step: ChainStep, within: list[Evaluator]) -> Callable[[ValueOrError, EvaluationContext], ValueOrError]:
    match step:
        case BinaryStep(operator=operator):
            two, right = operators.BINARY[operator], within[0]
            return lambda value, event: two(value, right(event))
        case LikeStep(pattern=pattern, negated=negated):
            return _like(like_pattern.parse_pattern(pattern), negated)
        case InStep(negated=negated):
            return _in(within, negated)


def _like(
    pattern: like_pattern.LikePattern, negated: bool
) -> Callable[[ValueOrError, EvaluationContext], ValueOrError]:
    one = operators.like_function(like_pattern.pattern_matcher(pattern), negated)
    each = _ONE_BY_ONE + sum(map(len, pattern.segments)) // 8 if pattern.wild else 1

    def step(value: ValueOrError, event: EvaluationContext) -> ValueOrError:
        if type(value) is str:
            event.spend(each * len(value))
        return one(value)

    return step


def _in(elements: list[Evaluator], negated: bool) -> Callable[[ValueOrError, EvaluationContext], ValueOrError]:
    """Whether a value is one of others, which are made into its type and looked at until one is equal (SUB-614)."""

    def step(value: ValueOrError, event: EvaluationContext) -> ValueOrError:
        if isinstance(value, ErrorValue):
            return ErrorValue(False, *value.errors)
        failed: dict[ErrorKind, None] = {}
        found, kind = False, type(value)
        for element in elements:
            other = element(event)
            if isinstance(other, ErrorValue):
                return ErrorValue(False, *failed, *other.errors)
            if type(other) is not kind:
                other = values.cast_value(other, kind)
                if isinstance(other, ErrorValue):
                    failed.update(dict.fromkeys(other.errors))
                    other = other.value
            if other == value:
                found = True
                break
        return ErrorValue(found is not negated, *failed) if failed else found is not negated

    return step
