"""Converts syntax trees to expression texts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from typing import Final

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
)


def unparse(tree: SyntaxNode) -> str:
    """An expression text that parses to the same tree."""
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
    """An operand of a chain, in parentheses unless it binds more strongly."""
    return f"({text})" if isinstance(node, OperatorChain) and _level(node) <= level else text


def _level(chain: OperatorChain) -> int:
    step = chain.steps[0]
    return _LEVELS[step.operator] if isinstance(step, BinaryStep) else len(PRECEDENCE)


_LEVELS: Final = {operator: level for level, operators in enumerate(PRECEDENCE) for operator in operators}


def _quoted(value: str) -> str:
    """A string literal. A backslash and the next character form a unit, so text with `\\'` needs double quotes."""
    quote = '"' if "\\'" in _ESCAPES.findall(value) else "'"
    return quote + re.sub(rf"(\\.)|{quote}", lambda each: each[1] or f"\\{quote}", value, flags=re.DOTALL) + quote


_ESCAPES: Final = re.compile(r"\\.", re.DOTALL)
