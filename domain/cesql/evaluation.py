"""Compiles expressions to functions of an event.

The cost of an evaluation is bounded in two ways: compilation limits the steps of an expression, and evaluation limits
the text that functions and patterns process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby, islice
from typing import Final, Protocol, cast

from annals.domain.cesql import like_pattern, operators, values
from annals.domain.cesql.functions import apply_function, find_function
from annals.domain.cesql.parser import parse
from annals.domain.cesql.syntax import (
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
from annals.domain.cesql.tokenizer import ParseError
from annals.domain.cesql.values import (
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
_COST_WITH_UNDERSCORES: Final = 128


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
    _evaluator: Evaluator = field(repr=False, compare=False)
    _is_metered: bool = field(default=True, repr=False, compare=False)

    def evaluate(self, event: ContextAttributes) -> EvaluationResult:
        """The result of the expression for an event. Never raises."""
        outcome = self._evaluate(event)
        return (
            EvaluationResult(outcome.value, outcome.errors)
            if isinstance(outcome, ErrorValue)
            else EvaluationResult(outcome)
        )

    def matches(self, event: ContextAttributes) -> bool:
        """Whether the value is true as a Boolean, without any error (SUB-421)."""
        outcome = self._evaluate(event)
        return outcome is True or (outcome is not False and operators.to_boolean(outcome) is True)

    def _evaluate(self, event: ContextAttributes) -> ValueOrError:
        try:
            return self._evaluator(cast(EvaluationContext, _MeteredEvent(event) if self._is_metered else event))
        except TooMuchText:
            return _GENERIC
        except RecursionError:  # the caller used up the stack; an expression needs at most 700 frames
            return _GENERIC


_GENERIC: Final = ErrorValue(False, ErrorKind.GENERIC)


def compile_expression(text: str) -> CesqlExpression:
    """The compiled expression of a text. Raises: ParseError, also for too many steps."""
    tree = parse(text)
    if sum(map(_step_count, walk(tree))) > MAX_STEPS:
        raise ParseError(f"an expression has at most {MAX_STEPS} operators, calls, arguments and elements", text, 0)
    unknown: list[FunctionCall] = []

    def make(node: SyntaxNode, children: list[Evaluator]) -> Evaluator:
        if isinstance(node, FunctionCall) and find_function(node.name, len(node.arguments)) is None:
            unknown.append(node)
        return _evaluator(node, children)

    evaluator = fold(tree, make)
    needs_budget = any(map(_is_text_node, walk(tree)))
    return CesqlExpression(text, tree, tuple(sorted(unknown, key=lambda call: call.position)), evaluator, needs_budget)


def _step_count(node: SyntaxNode) -> int:
    match node:
        case FunctionCall(arguments=arguments):
            return 1 + len(arguments)
        case UnaryOperation(operators=signs):
            return len(_reduce_signs(signs))
        case OperatorChain(steps=steps):
            return sum(len(step.elements) if isinstance(step, InStep) else 1 for step in steps)
    return 0


def _is_text_node(node: SyntaxNode) -> bool:
    """Whether a node processes text; an expression without such nodes needs no budget."""
    return isinstance(node, FunctionCall) or (
        isinstance(node, OperatorChain) and any(isinstance(step, LikeStep) for step in node.steps)
    )


def _reduce_signs(signs: tuple[str, ...]) -> tuple[str, ...]:
    """An equivalent shorter list: a run of equal operators becomes one of two or three.

    A longer run equals that: the first operator casts, and what fails there is false or zero for the second (SUB-642).
    """
    runs = ((sign, sum(1 for _ in repeated)) for sign, repeated in groupby(signs))
    return tuple(sign for sign, count in runs for _ in range(count if count < 4 else 2 + count % 2))


def _evaluator(node: SyntaxNode, children: list[Evaluator]) -> Evaluator:
    match node:
        case LiteralValue(value=value):
            return lambda _: value
        case ContextAttribute(name=name):
            return _attribute_evaluator(name)
        case ExistsCheck(name=name):
            return _exists_evaluator(name)
        case FunctionCall(name=name):
            return _call_evaluator(name, children)
        case UnaryOperation(operators=signs):
            return _unary_evaluator(signs, children[0])
        case OperatorChain(steps=(BinaryStep(operator=operator), *_)) if operator in _LOGIC:
            return _logic_evaluator([step.operator for step in node.steps if isinstance(step, BinaryStep)], children)
        case OperatorChain(steps=(BinaryStep(operator=operator),)):
            return _binary_evaluator(operator, *children)
        case OperatorChain(steps=steps):
            return _chain_evaluator(steps, children)


def _attribute_evaluator(name: str) -> Evaluator:
    if name == DATA_MEMBER:
        return lambda _: MISSING

    def evaluate(event: EvaluationContext) -> ValueOrError:
        value = event.get(name)
        return value if type(value) is str else attribute_value(value, name)

    return evaluate


def _exists_evaluator(name: str) -> Evaluator:
    if name == DATA_MEMBER:
        return lambda _: False
    return (lambda _: True) if name in REQUIRED_ATTRIBUTES else (lambda event: event.get(name) is not None)


def _call_evaluator(name: str, arguments: list[Evaluator]) -> Evaluator:
    function = find_function(name, len(arguments))
    if function is None:
        return lambda _: _NO_FUNCTION

    def evaluate(event: EvaluationContext) -> ValueOrError:
        argument_values = [argument(event) for argument in arguments]
        event.spend(sum(len(argument_value) for argument_value in argument_values if type(argument_value) is str))
        return apply_function(function, argument_values)

    return evaluate


def _unary_evaluator(signs: tuple[str, ...], operand: Evaluator) -> Evaluator:
    functions = [operators.unary_function(sign) for sign in reversed(_reduce_signs(signs))]

    def evaluate(event: EvaluationContext) -> ValueOrError:
        value = operand(event)
        for function in functions:
            value = function(value)
        return value

    return evaluate


def _binary_evaluator(operator: str, left: Evaluator, right: Evaluator) -> Evaluator:
    function = operators.BINARY[operator]
    return lambda event: function(left(event), right(event))


def _logic_evaluator(names: list[str], children: list[Evaluator]) -> Evaluator:
    """`and`, `or` and `xor` in a row. The right value is not evaluated if the left one decides (cesql 3.4.2)."""
    first, *other_operands = children
    following = [
        (operators.SHORT_CIRCUITS.get(name), operators.LOGIC[name], operand)
        for name, operand in zip(names, other_operands, strict=True)
    ]

    def evaluate(event: EvaluationContext) -> ValueOrError:
        value = first(event)
        for deciding_value, function, other in following:
            if value is True or value is False:
                if value is deciding_value:
                    continue
                right_value = other(event)
                value = (
                    function.compute(value, right_value)
                    if right_value is True or right_value is False
                    else apply_function(function, (value, right_value))
                )
            elif deciding_value is not None and operators.is_true(value) is deciding_value:
                value = operators.to_boolean(value)
            else:
                value = apply_function(function, (value, other(event)))
        return value

    return evaluate


def _chain_evaluator(steps: tuple[ChainStep, ...], children: list[Evaluator]) -> Evaluator:
    operands: Iterator[Evaluator] = iter(children)
    first = next(operands)
    step_functions = []
    for step in steps:
        count = len(step.elements) if isinstance(step, InStep) else isinstance(step, BinaryStep)
        step_functions.append(_step_evaluator(step, list(islice(operands, count))))
    if len(step_functions) == 1:
        only_step = step_functions[0]
        return lambda event: only_step(first(event), event)

    def evaluate(event: EvaluationContext) -> ValueOrError:
        value = first(event)
        for step in step_functions:
            value = step(value, event)
        return value

    return evaluate


def _step_evaluator(
    step: ChainStep, operands: list[Evaluator]
) -> Callable[[ValueOrError, EvaluationContext], ValueOrError]:
    match step:
        case BinaryStep(operator=operator):
            function, right_operand = operators.BINARY[operator], operands[0]
            return lambda value, event: function(value, right_operand(event))
        case LikeStep(pattern=pattern, negated=negated):
            return _like_evaluator(like_pattern.parse_pattern(pattern), negated)
        case InStep(negated=negated):
            return _in_evaluator(operands, negated)


def _like_evaluator(
    pattern: like_pattern.LikePattern, negated: bool
) -> Callable[[ValueOrError, EvaluationContext], ValueOrError]:
    matches_value = operators.like_function(like_pattern.pattern_matcher(pattern), negated)
    cost_per_character = _COST_WITH_UNDERSCORES + sum(map(len, pattern.segments)) // 8 if pattern.has_underscores else 1

    def step(value: ValueOrError, event: EvaluationContext) -> ValueOrError:
        if type(value) is str:
            event.spend(cost_per_character * len(value))
        return matches_value(value)

    return step


def _in_evaluator(
    elements: list[Evaluator], negated: bool
) -> Callable[[ValueOrError, EvaluationContext], ValueOrError]:
    """Whether a value equals one of others. They are cast to its type, in order, until one is equal (SUB-614)."""

    def contains(value: ValueOrError, event: EvaluationContext) -> ValueOrError:
        if isinstance(value, ErrorValue):
            return ErrorValue(False, *value.errors)
        cast_errors: dict[ErrorKind, None] = {}
        is_found, value_type = False, type(value)
        for element in elements:
            candidate = element(event)
            if isinstance(candidate, ErrorValue):
                return ErrorValue(False, *cast_errors, *candidate.errors)
            if type(candidate) is not value_type:
                candidate = values.cast_value(candidate, value_type)
                if isinstance(candidate, ErrorValue):
                    cast_errors.update(dict.fromkeys(candidate.errors))
                    candidate = candidate.value
            if candidate == value:
                is_found = True
                break
        return ErrorValue(is_found is not negated, *cast_errors) if cast_errors else is_found is not negated

    return contains
