"""From text to trees, by the precedence of operators.

Written by hand because a sign next to digits is part of a number only where an operand has to come (SUB-602), which no
table of tokens can say, and because people who type a filter want to be told where it goes wrong.
Spec: cesql 1.0.0, sections 2 and 3.6; requirements on what the grammar leaves open: SUB-601 to SUB-604.
"""

from __future__ import annotations

import re
from typing import Final

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
)
from domain.cesql.tokens import DEEPEST, LONGEST, Kind, ParseError, Token, tokens
from domain.cesql.values import integer

_LEVELS: Final = {operator: level for level, operators in enumerate(LEVELS) for operator in operators}
_POSTFIX: Final = frozenset(("like", "in", "not"))
_FUNCTION: Final = re.compile(r"[A-Za-z][A-Za-z_]*\Z")


def parse(text: str) -> Node:
    """The tree of an expression. Raises: ParseError."""
    try:
        if len(text) > LONGEST or len(text.encode()) > LONGEST:
            raise ParseError(f"an expression has at most {LONGEST} bytes", text, 0)
        return _Parser(text).whole()
    except UnicodeEncodeError as error:
        raise ParseError("half of a surrogate pair is no character", text, error.start) from None
    except RecursionError:
        raise ParseError("the nesting is too deep", text, 0) from None


class _Open:
    """A chain whose last operand is still to come."""

    def __init__(self, level: int, first: Node, operator: str) -> None:
        self.level = level
        self._first = first
        self._steps: list[Step] = []
        self._operator = operator

    def follow(self, operand: Node, operator: str) -> None:
        self._steps.append(Binary(self._operator, operand))
        self._operator = operator

    def closed(self, operand: Node) -> Chain:
        return Chain(self._first, (*self._steps, Binary(self._operator, operand)))


class _Parser:
    """One way along the tokens of a text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(tokens(text))
        self._at = 0
        self._open = 0

    def whole(self) -> Node:
        tree = self._expression()
        if self._next.kind is not Kind.END:
            raise self._expected("an operator or the end")
        return tree

    @property
    def _next(self) -> Token:
        return self._tokens[self._at]

    def _take(self) -> Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _skip(self, text: str) -> bool:
        """Whether a keyword or a sign comes next; then it is behind."""
        token = self._next
        found = token.text == text and token.kind in (Kind.KEYWORD, Kind.SIGN)
        self._at += found
        return found

    def _expression(self) -> Node:
        """Terms and the binary operators between them. Chains that a stronger operator interrupts wait on a stack."""
        waiting: list[_Open] = []
        while True:
            tree = self._term()
            level = self._level()
            while waiting and waiting[-1].level > level:
                tree = waiting.pop().closed(tree)
            if level < 0:
                return tree
            if waiting and waiting[-1].level == level:
                waiting[-1].follow(tree, self._take().text)
            else:
                waiting.append(_Open(level, tree, self._take().text))

    def _level(self) -> int:
        """The precedence of the binary operator that comes next; -1 where none does."""
        kind, text = self._next[:2]
        return _LEVELS.get(text, -1) if kind in (Kind.KEYWORD, Kind.SIGN) else -1

    def _term(self) -> Node:
        """An operand with its unary operators, and `LIKE` and `IN` behind it."""
        operand = self._operand()
        steps: list[Step] = []
        while self._next.kind is Kind.KEYWORD and self._next.text in _POSTFIX:
            steps.append(self._postfix())
        return Chain(operand, tuple(steps)) if steps else operand

    def _postfix(self) -> Step:
        negated = self._skip("not")
        if self._skip("like"):
            if self._next.kind is not Kind.STRING:
                raise self._expected("a string literal")
            return Like(self._take().text, negated)
        if not self._skip("in"):
            raise self._expected("LIKE or IN")
        self._opened("a set in parentheses")
        return In(self._list(), negated)

    def _operand(self) -> Node:
        operators = []
        while (token := self._next).text in ("not", "-") and token.kind in (Kind.KEYWORD, Kind.SIGN):
            if self._signs_number():
                break
            operators.append(self._take().text)
        operand = self._single()
        return Unary(tuple(operators), operand) if operators else operand

    def _signs_number(self) -> bool:
        """Whether a sign comes next, and digits right behind it."""
        sign, number = self._tokens[self._at], self._tokens[min(self._at + 1, len(self._tokens) - 1)]
        return (
            sign.kind is Kind.SIGN
            and sign.text in ("+", "-")
            and number.kind is Kind.NUMBER
            and sign.end == number.start
        )

    def _single(self) -> Node:
        if self._signs_number():
            sign = self._take()
            return self._number(sign.text, sign.start)
        token = self._next
        match token.kind, token.text:
            case Kind.NUMBER, _:
                return self._number("", token.start)
            case Kind.STRING, value:
                self._at += 1
                return Literal(value)
            case Kind.KEYWORD, "true" | "false":
                return Literal(self._take().text == "true")
            case Kind.KEYWORD, "exists":
                self._at += 1
                return Exists(self._name())
            case Kind.SIGN, "(":
                self._opened("(")
                tree = self._expression()
                self._closed()
                return tree
            case Kind.NAME, _ if self._tokens[self._at + 1][:2] == (Kind.SIGN, "("):
                return self._call()
            case Kind.NAME, _:
                return Attribute(self._name())
        raise self._expected("a value")

    def _number(self, sign: str, start: int) -> Literal:
        token = self._take()
        value = integer(sign + token.text)
        if value is None:
            raise ParseError("the number is not in the range of 32 bits", self._text, start)
        return Literal(value)

    def _name(self) -> str:
        if self._next.kind is not Kind.NAME:
            raise self._expected("the name of an attribute")
        token = self._take()
        if "_" in token.text:
            raise ParseError(f"{token.text} is no name of an attribute", self._text, token.start)
        return token.text.lower()

    def _call(self) -> Call:
        token = self._take()
        if not _FUNCTION.match(token.text):
            raise ParseError(f"{token.text} is no name of a function", self._text, token.start)
        self._opened("(")
        arguments: tuple[Node, ...] = ()
        if self._skip(")"):
            self._open -= 1
        else:
            arguments = self._list()
        return Call(token.text.upper(), arguments, token.start)

    def _list(self) -> tuple[Node, ...]:
        """Expressions up to a closing parenthesis, one at least."""
        found = [self._expression()]
        while self._skip(","):
            found.append(self._expression())
        self._closed()
        return tuple(found)

    def _opened(self, what: str) -> None:
        start = self._next.start
        if not self._skip("("):
            raise self._expected(what)
        self._open += 1
        if self._open > DEEPEST:
            raise ParseError(f"more than {DEEPEST} parentheses are open", self._text, start)

    def _closed(self) -> None:
        if not self._skip(")"):
            raise self._expected("an operator or )")
        self._open -= 1

    def _expected(self, what: str) -> ParseError:
        token = self._next
        found = token.kind.value if token.kind is Kind.END else repr(self._text[token.start : token.end][:40])
        return ParseError(f"{what} is expected, not {found}", self._text, token.start)
