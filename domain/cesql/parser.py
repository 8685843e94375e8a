"""A precedence parser from text to syntax trees.

It is written by hand for two reasons. A sign directly before digits belongs to the number only where an operand is
expected (SUB-602), which a token table cannot express. And people who type a filter need the position of an error.
Spec: cesql 1.0.0, sections 2 and 3.6; requirements on what the grammar leaves open: SUB-601 to SUB-604.
"""

from __future__ import annotations

import re
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
)
from annals.domain.cesql.tokenizer import MAX_BYTES, MAX_PARENTHESES, CesqlToken, ParseError, TokenKind, tokenize
from annals.domain.cesql.values import parse_integer

_LEVELS: Final = {operator: level for level, operators in enumerate(PRECEDENCE) for operator in operators}
_POSTFIX: Final = frozenset(("like", "in", "not"))
_FUNCTION: Final = re.compile(r"[A-Za-z][A-Za-z_]*\Z")


def parse(text: str) -> SyntaxNode:
    """The syntax tree of an expression. Raises: ParseError."""
    try:
        if len(text) > MAX_BYTES or len(text.encode()) > MAX_BYTES:
            raise ParseError(f"an expression has at most {MAX_BYTES} bytes", text, 0)
        return _Parser(text).parse_all()
    except UnicodeEncodeError as error:
        raise ParseError("half of a surrogate pair is not a character", text, error.start) from None
    except RecursionError:
        raise ParseError("the nesting is too deep", text, 0) from None


class _OpenChain:
    """A chain of operators that waits for its last operand."""

    def __init__(self, level: int, first: SyntaxNode, operator: str) -> None:
        self.level = level
        self._first = first
        self._steps: list[ChainStep] = []
        self._operator = operator

    def add_step(self, operand: SyntaxNode, operator: str) -> None:
        self._steps.append(BinaryStep(self._operator, operand))
        self._operator = operator

    def close(self, operand: SyntaxNode) -> OperatorChain:
        return OperatorChain(self._first, (*self._steps, BinaryStep(self._operator, operand)))


class _Parser:
    """The parser state for one text."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = list(tokenize(text))
        self._index = 0
        self._depth = 0

    def parse_all(self) -> SyntaxNode:
        tree = self._expression()
        if self._next.kind is not TokenKind.END:
            raise self._unexpected_token("an operator or the end")
        return tree

    @property
    def _next(self) -> CesqlToken:
        return self._tokens[self._index]

    def _take(self) -> CesqlToken:
        token = self._tokens[self._index]
        self._index += 1
        return token

    def _skip(self, text: str) -> bool:
        """Whether the next token is this keyword or sign; if so, consumes it."""
        token = self._next
        is_next = token.text == text and token.kind in (TokenKind.KEYWORD, TokenKind.SIGN)
        self._index += is_next
        return is_next

    def _expression(self) -> SyntaxNode:
        """Terms with binary operators between them. A chain that a stronger operator interrupts waits on a stack."""
        open_chains: list[_OpenChain] = []
        while True:
            tree = self._term()
            level = self._next_level()
            while open_chains and open_chains[-1].level > level:
                tree = open_chains.pop().close(tree)
            if level < 0:
                return tree
            if open_chains and open_chains[-1].level == level:
                open_chains[-1].add_step(tree, self._take().text)
            else:
                open_chains.append(_OpenChain(level, tree, self._take().text))

    def _next_level(self) -> int:
        """The precedence of the next binary operator; -1 where the next token is none."""
        kind, text = self._next[:2]
        return _LEVELS.get(text, -1) if kind in (TokenKind.KEYWORD, TokenKind.SIGN) else -1

    def _term(self) -> SyntaxNode:
        """An operand with its unary operators, and with any `LIKE` and `IN` after it."""
        operand = self._operand()
        steps: list[ChainStep] = []
        while self._next.kind is TokenKind.KEYWORD and self._next.text in _POSTFIX:
            steps.append(self._postfix())
        return OperatorChain(operand, tuple(steps)) if steps else operand

    def _postfix(self) -> ChainStep:
        negated = self._skip("not")
        if self._skip("like"):
            if self._next.kind is not TokenKind.STRING:
                raise self._unexpected_token("a string literal")
            return LikeStep(self._take().text, negated)
        if not self._skip("in"):
            raise self._unexpected_token("LIKE or IN")
        self._open_parenthesis("a set in parentheses")
        return InStep(self._list(), negated)

    def _operand(self) -> SyntaxNode:
        operators = []
        while (token := self._next).text in ("not", "-") and token.kind in (TokenKind.KEYWORD, TokenKind.SIGN):
            if self._is_signed_number():
                break
            operators.append(self._take().text)
        operand = self._primary()
        return UnaryOperation(tuple(operators), operand) if operators else operand

    def _is_signed_number(self) -> bool:
        """Whether the next tokens are a sign and directly adjacent digits."""
        sign, number = self._tokens[self._index], self._tokens[min(self._index + 1, len(self._tokens) - 1)]
        return (
            sign.kind is TokenKind.SIGN
            and sign.text in ("+", "-")
            and number.kind is TokenKind.NUMBER
            and sign.end == number.start
        )

    def _primary(self) -> SyntaxNode:
        if self._is_signed_number():
            sign = self._take()
            return self._number(sign.text, sign.start)
        token = self._next
        match token.kind, token.text:
            case TokenKind.NUMBER, _:
                return self._number("", token.start)
            case TokenKind.STRING, value:
                self._index += 1
                return LiteralValue(value)
            case TokenKind.KEYWORD, "true" | "false":
                return LiteralValue(self._take().text == "true")
            case TokenKind.KEYWORD, "exists":
                self._index += 1
                return ExistsCheck(self._name())
            case TokenKind.SIGN, "(":
                self._open_parenthesis("(")
                tree = self._expression()
                self._close_parenthesis()
                return tree
            case TokenKind.NAME, _ if self._tokens[self._index + 1][:2] == (TokenKind.SIGN, "("):
                return self._call()
            case TokenKind.NAME, _:
                return ContextAttribute(self._name())
        raise self._unexpected_token("a value")

    def _number(self, sign: str, start: int) -> LiteralValue:
        token = self._take()
        value = parse_integer(sign + token.text)
        if value is None:
            raise ParseError("the number is not in the range of 32 bits", self._text, start)
        return LiteralValue(value)

    def _name(self) -> str:
        if self._next.kind is not TokenKind.NAME:
            raise self._unexpected_token("the name of an attribute")
        token = self._take()
        if "_" in token.text:
            raise ParseError(f"{token.text} is not the name of an attribute", self._text, token.start)
        return token.text.lower()

    def _call(self) -> FunctionCall:
        token = self._take()
        if not _FUNCTION.match(token.text):
            raise ParseError(f"{token.text} is not the name of a function", self._text, token.start)
        self._open_parenthesis("(")
        arguments: tuple[SyntaxNode, ...] = ()
        if self._skip(")"):
            self._depth -= 1
        else:
            arguments = self._list()
        return FunctionCall(token.text.upper(), arguments, token.start)

    def _list(self) -> tuple[SyntaxNode, ...]:
        """Expressions up to a closing parenthesis; at least one."""
        elements = [self._expression()]
        while self._skip(","):
            elements.append(self._expression())
        self._close_parenthesis()
        return tuple(elements)

    def _open_parenthesis(self, expected: str) -> None:
        start = self._next.start
        if not self._skip("("):
            raise self._unexpected_token(expected)
        self._depth += 1
        if self._depth > MAX_PARENTHESES:
            raise ParseError(f"more than {MAX_PARENTHESES} parentheses are open", self._text, start)

    def _close_parenthesis(self) -> None:
        if not self._skip(")"):
            raise self._unexpected_token("an operator or )")
        self._depth -= 1

    def _unexpected_token(self, expected: str) -> ParseError:
        token = self._next
        actual = token.kind.value if token.kind is TokenKind.END else repr(self._text[token.start : token.end][:40])
        return ParseError(f"{expected} is expected, not {actual}", self._text, token.start)
