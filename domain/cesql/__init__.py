"""CloudEvents SQL: expressions over the context attributes of an event, as filters and to compute values.

An expression is parsed and compiled once; evaluating it gives a value and the errors that occurred, and never raises.
Spec: CloudEvents SQL Expression Language 1.0.0.
"""

from domain.cesql.expression import Expression, Result, compile
from domain.cesql.tokens import DEEPEST, LONGEST, ParseError
from domain.cesql.values import Error, Event, Value

__all__ = ["DEEPEST", "LONGEST", "Error", "Event", "Expression", "ParseError", "Result", "Value", "compile"]
