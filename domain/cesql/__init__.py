"""CloudEvents SQL: expressions over the context attributes of an event, for filters and computed values.

An expression is parsed and compiled once. Its evaluation returns a value and the errors that occurred; it never raises.
The payload of events does not belong here. Begin with `evaluation.py`.
Spec: CloudEvents SQL Expression Language 1.0.0.
"""

from annals.domain.cesql.evaluation import CesqlExpression, EvaluationResult, compile_expression
from annals.domain.cesql.tokenizer import MAX_BYTES, MAX_PARENTHESES, ParseError
from annals.domain.cesql.values import CesqlValue, ContextAttributes, ErrorKind

__all__ = [
    "MAX_BYTES",
    "MAX_PARENTHESES",
    "CesqlExpression",
    "CesqlValue",
    "ContextAttributes",
    "ErrorKind",
    "EvaluationResult",
    "ParseError",
    "compile_expression",
]
