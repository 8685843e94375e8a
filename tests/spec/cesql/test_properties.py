"""Properties of expressions: unparsed trees parse to equal trees, evaluation never raises, patterns match correctly."""

from __future__ import annotations

import re
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annals.domain.cesql import (
    MAX_BYTES,
    MAX_PARENTHESES,
    CesqlValue,
    ErrorKind,
    ParseError,
    compile_expression,
    like_pattern,
)
from annals.domain.cesql.evaluation import MAX_STEPS
from annals.domain.cesql.functions import FUNCTIONS, MAX_RESULT
from annals.domain.cesql.parser import parse
from annals.domain.cesql.syntax import (
    PRECEDENCE,
    BinaryStep,
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
from annals.domain.cesql.values import MAX_INTEGER, MIN_INTEGER
from tests.spec.cesql.unparse import unparse
from tests.support.examples import examples

KEYWORDS = {"and", "or", "xor", "not", "like", "exists", "in", "true", "false"}
#: Strings that a literal can contain: a backslash escapes the next character; not both quotes can follow backslashes.
PIECES = st.sampled_from(["a", "B", "%", "_", "'", '"', " ", "é", "😀", "\n", "\\\\", "\\a", "\\%", "\\_", "1", "true"])
TEXTS = st.lists(PIECES, max_size=6).map("".join)
NAMES = st.from_regex(r"[a-z0-9]*[a-z][a-z0-9]*", fullmatch=True).filter(lambda name: name not in KEYWORDS)
KNOWN = st.sampled_from(["id", "type", "subject", "absent", "number", "flag", "data"])
VALUES = st.one_of(TEXTS, st.integers(MIN_INTEGER, MAX_INTEGER), st.booleans())
LEAVES: st.SearchStrategy[SyntaxNode] = st.one_of(
    st.builds(LiteralValue, VALUES), st.builds(ContextAttribute, KNOWN | NAMES), st.builds(ExistsCheck, KNOWN | NAMES)
)


def several(nodes: st.SearchStrategy[SyntaxNode], least: int = 1) -> st.SearchStrategy[tuple[SyntaxNode, ...]]:
    return st.lists(nodes, min_size=least, max_size=3).map(tuple)


def larger(nodes: st.SearchStrategy[SyntaxNode]) -> st.SearchStrategy[SyntaxNode]:
    signs = st.lists(st.sampled_from(["not", "-"]), min_size=1, max_size=3).map(tuple)
    postfix = st.builds(LikeStep, TEXTS, st.booleans()) | st.builds(InStep, several(nodes), st.booleans())
    rows = [
        st.lists(st.builds(BinaryStep, st.sampled_from(row), nodes), min_size=1, max_size=3).map(tuple)
        for row in PRECEDENCE
    ]
    steps = st.one_of(st.lists(postfix, min_size=1, max_size=2).map(tuple), *rows)
    calls = st.builds(FunctionCall, st.sampled_from([*FUNCTIONS, "NO_SUCH"]), several(nodes, 0))
    return st.one_of(calls, st.builds(UnaryOperation, signs, nodes), st.builds(OperatorChain, nodes, steps))


TREES = st.recursive(LEAVES, larger, max_leaves=12)
EVENTS = st.dictionaries(
    KNOWN | NAMES,
    st.one_of(
        TEXTS, st.text(), st.integers(), st.booleans(), st.floats(), st.none()
    ),  # also values that are not allowed in events
    max_size=6,
)
#: Pieces of expressions in random order.
SCRAPS = st.lists(
    st.sampled_from(
        [
            *(
                "(",
                ")",
                ",",
                "'",
                '"',
                "\\",
                "NOT",
                "LIKE",
                "IN",
                "IN(",
                "EXISTS",
                "AND",
                "TRUE",
                "ABS(",
                "a",
                "'x'",
                "$",
            ),
            *("1", "2147483648", "-", "+", "*", "/", "%", "=", "<", ">", "!=", "_", "é", "\0"),
        ]
    ),
    max_size=12,
).flatmap(lambda scraps: st.sampled_from(["", " ", "\n"]).map(lambda between: between.join(scraps)))


@given(TREES)
def test_what_is_written_out_parses_to_the_same(tree: SyntaxNode) -> None:
    # SUB-601, SUB-603: precedence and parentheses survive unparsing and parsing
    assert parse(unparse(tree)) == tree


@given(SCRAPS | st.text(max_size=20))
def test_any_text_is_an_expression_or_a_parse_error(given: str) -> None:
    # SUB-641: a parsed expression has a value
    try:
        compiled = compile_expression(given)
    except ParseError as error:
        assert 0 <= error.position <= len(given) and error.line >= 1 and error.column >= 1
        return
    assert type(compiled.evaluate({}).value) in (str, int, bool)
    assert parse(unparse(compiled.tree)) == compiled.tree


@given(TREES, EVENTS)
def test_evaluation_never_raises(tree: SyntaxNode, event: dict[str, Any]) -> None:
    # SUB-641, SUB-645: the value has one of three types, is the same each time, and the event is not changed
    compiled, before = compile_expression(unparse(tree)), dict(event)
    found = compiled.evaluate(event)
    assert type(found.value) in (str, int, bool)
    assert type(found.value) is not int or MIN_INTEGER <= found.value <= MAX_INTEGER
    assert all(isinstance(error, ErrorKind) for error in found.errors) and len(set(found.errors)) == len(found.errors)
    assert compiled.evaluate(event) == found and event.items() == before.items()
    assert compiled.matches(event) is (not found.errors and as_boolean(found.value))


def as_boolean(value: CesqlValue) -> bool:
    return value.lower() == "true" if isinstance(value, str) else bool(value)


@given(st.text("ab%_\\\n", max_size=8), st.text("ab%_\\\n", max_size=12))
@settings(max_examples=examples(500))
def test_patterns_are_what_a_regular_expression_would_be(pattern: str, subject: str) -> None:
    # SUB-651: the matcher agrees with an equivalent regular expression
    pieces = re.findall(r"\\[%_]|.", pattern, re.DOTALL)
    wild = {"%": ".*", "_": "."}
    expression = "".join(wild.get(piece, re.escape(piece[-1])) for piece in pieces)
    expected = re.fullmatch(expression, subject, re.DOTALL) is not None
    parsed = like_pattern.parse_pattern(pattern)
    assert like_pattern.pattern_matcher(parsed)(subject) is expected
    if expected:
        assert subject.startswith(parsed.prefix) and (not parsed.is_exact or subject == parsed.prefix)


HOSTILE = ["%a%a%a%a%b", f"%{'a_' * 2000}b%", f"%{'a' * 4000}b%", "%_a%_a%_b", "%a_" * 2000, f"%{'_' * 4000}b"]


@pytest.mark.parametrize("pattern", HOSTILE, ids=lambda pattern: pattern[:12])
def test_patterns_take_no_longer_than_their_text(pattern: str) -> None:
    # SUB-412: a text of 64 KiB and patterns that cause backtracking in other matchers. The fastest of three runs
    # counts. A pattern of 8 KiB takes about 20 ms on an idle machine.
    compiled, event = compile_expression(f"subject LIKE '{pattern}'"), {"subject": "a" * 65536}
    taken = []
    for _ in range(3):
        began = time.thread_time()
        compiled.evaluate(event)
        taken.append(time.thread_time() - began)
    assert min(taken) < (0.05 if len(pattern) < 100 else 0.5)


WORST = "NOT 1 OR 1 = 1 + 1 * - 1 IN ("


@pytest.mark.parametrize("opening", ["(", "CONCAT(", "1 IN (", "NOT (", "-(", WORST])
def test_as_deep_as_it_may_be(opening: str) -> None:
    # SUB-423: at most 100 open parentheses; SUB-641: an expression with 100 can be evaluated
    deepest = opening * MAX_PARENTHESES + "1" + ")" * MAX_PARENTHESES
    assert compile_expression(deepest).evaluate({}).error is None
    assert compile_expression(unparse(parse(deepest))).evaluate({}) == compile_expression(deepest).evaluate({})
    with pytest.raises(ParseError, match="more than 100 parentheses"):
        compile_expression(f"{opening}{deepest})")


@pytest.mark.parametrize(
    ("start", "again"),
    [("1", "+1"), ("TRUE", " AND TRUE"), ("1", "=1"), ("'a'", "LIKE'a'"), ("1", " IN(1)"), ("1", "*1"), ("a", " OR a")],
)
def test_as_long_as_it_may_be(start: str, again: str) -> None:
    # SUB-423: 8 KiB of operators in a row do not nest
    longest = start + again * min(MAX_STEPS, (MAX_BYTES - len(start)) // len(again))
    longest += " " * (MAX_BYTES - len(longest))
    found = compile_expression(longest).evaluate({})
    assert found.value is not None
    with pytest.raises(ParseError, match="8192 bytes"):
        compile_expression(longest + " ")


def test_signs_in_a_row_are_not_deep() -> None:
    # SUB-423: 8 KiB of signs are accepted
    assert compile_expression("-" * (MAX_BYTES - 1) + "1").evaluate({}).value == -1
    assert compile_expression("NOT " * 2000 + "TRUE").evaluate({}).value is True


def test_length_is_counted_in_bytes() -> None:
    # SUB-423: in bytes of UTF-8
    assert compile_expression(f"'{'é' * 4095}'").evaluate({}).value == "é" * 4095
    with pytest.raises(ParseError, match="8192 bytes"):
        compile_expression(f"'{'é' * 4096}'")
    with pytest.raises(ParseError, match="surrogate"):
        compile_expression("'\ud800'")


def test_what_functions_make_has_a_bound() -> None:
    # the result of a function is limited, so that a short expression cannot create a very long text
    event = {"subject": "x" * 65536}
    assert len(str(compile_expression(f"CONCAT({', '.join(['subject'] * 16)})").evaluate(event).value)) == MAX_RESULT
    found = compile_expression(f"CONCAT({', '.join(['subject'] * 17)})").evaluate(event)
    assert (found.value, found.errors) == ("", (ErrorKind.FUNCTION_EVALUATION,))


def test_no_stack_left() -> None:
    # SUB-641: evaluation has a value even if the caller has used up the stack
    deep = compile_expression("CONCAT(" * MAX_PARENTHESES + "1" + ")" * MAX_PARENTHESES)

    def descend() -> None:
        found.append(deep.evaluate({}))
        descend()

    found: list[Any] = []
    with pytest.raises(RecursionError):
        descend()
    assert found[0].value == "1"
    assert {result.error for result in found} == {None, ErrorKind.GENERIC}


def test_trees_fold_from_left_to_right() -> None:
    tree = parse("a + b * c IN (d, e) OR NOT f(g)")
    assert fold(tree, lambda node, within: "".join(within) or getattr(node, "name", "")) == "abcdeg"
