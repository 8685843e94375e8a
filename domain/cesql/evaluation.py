"""Compiles expressions to functions of an event.

The cost of an evaluation is bounded in two ways: compilation limits the steps of an expression, and evaluation limits
the text that functions and patterns process.
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
    MISSING,
    REQUIRED_ATTRIBUTES,
    CesqlValue,
    ContextAttributes,
    ErrorKind,
    ErrorValue,
    ValueOrError,
    attribute_value,
)

#: Maximum steps of an expression: operators, calls, arguments and elements of sets. An evaluation runs each once.
MAX_STEPS: Final = 1000
#: Maximum characters that functions and patterns process in one evaluation. A pattern with `_` reads a text character
#: by character. One such character costs as much as 128 others, and more for long patterns.
MAX_TEXT: Final = 1 << 21
_ONE_BY_ONE: Final = 128


class EvaluationContext(Protocol):
    """The event data that an evaluation reads, and its text budget."""

    def get(self, name: str, /) -> CesqlValue | None:
        """The value of an attribute; None where the event lacks it."""

    def spend(self, characters: int) -> None:
        """Charges characters to the budget. Raises: TooMuchText when it is exceeded."""


class TooMuchText(Exception):
    """An evaluation processes more text than its limit."""


class _MeteredEvent:
    """An event with the remaining text budget of its evaluation."""

    __slots__ = ("get", "remaining")

    def __init__(self, event: ContextAttributes) -> None:
        self.get = event.get
        self.remaining = MAX_TEXT

    def spend(self, characters: int) -> None:
        self.remaining -= characters
        if self.remaining < 0:
            raise TooMuchText


#: A compiled part of an expression.
Evaluator = Callable[[EvaluationContext], ValueOrError]

_LOGIC: Final = frozenset(PRECEDENCE[0])
_NO_FUNCTION: Final = ErrorValue(False, ErrorKind.MISSING_FUNCTION)


@dataclass(frozen=True, slots=True)
class EvaluationResult:
    """The value of an expression, and the errors in the order of their occurrence, each kind once."""

    value: CesqlValue
    errors: tuple[ErrorKind, ...] = ()

    @property
    def error(self) -> ErrorKind | None:
        """The first error; None without errors."""
        return self.errors[0] if self.errors else None


@dataclass(frozen=True, slots=True)
class CesqlExpression:
    """A compiled expression. unknown_functions: its calls of functions that do not exist with that name and arity."""

    text: str
    tree: SyntaxNode
    unknown_functions: tuple[FunctionCall, ...]
    _run: Evaluator = field(repr=False, compare=False)
    _metered: bool = field(default=True, repr=False, compare=False)

    def evaluate(self, event: ContextAttributes) -> EvaluationResult:
        """The result of the expression for an event. Never raises."""
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
        except RecursionError:  # the caller used up the stack; an expression needs at most 700 frames
            return _GENERIC


_GENERIC: Final = ErrorValue(False, ErrorKind.GENERIC)


def compile_expression(text: str) -> CesqlExpression:
    """The compiled expression of a text. Raises: ParseError, also for too many steps."""
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
    """Whether a node processes text; an expression without such nodes needs no budget."""
    return isinstance(node, FunctionCall) or (
        isinstance(node, OperatorChain) and any(isinstance(step, LikeStep) for step in node.steps)
    )


def _reduced_signs(signs: tuple[str, ...]) -> tuple[str, ...]:
    """An equivalent shorter list: an even run of equal operators becomes two, an odd run becomes one."""
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
        return lambda _: MISSING

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
    """`and`, `or` and `xor` in a row. The right value is not evaluated if the left one decides (cesql 3.4.2)."""
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
    each = _ONE_BY_ONE + sum(map(len, pattern.segments)) // 8 if pattern.has_underscores else 1

    def step(value: ValueOrError, event: EvaluationContext) -> ValueOrError:
        if type(value) is str:
            event.spend(each * len(value))
        return one(value)

    return step


def _in(elements: list[Evaluator], negated: bool) -> Callable[[ValueOrError, EvaluationContext], ValueOrError]:
    """Whether a value equals one of others. They are cast to its type, in order, until one is equal (SUB-614)."""

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
