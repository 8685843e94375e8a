"""Compiles filters to SQL over the `attribute` table.

A conjunction selects the entities of its deepest type that meet its expressions on that type and whose owners meet the
others: a set of tree keys. A filter keeps, for each conjunction, these entities, all their descendants and all their
ancestors. One expression drives each set, by a range of an index; the others are lookups by primary key for its
results.

Keys hold the beginnings of texts, and doubles for numbers with a mark where a double is not exact. Where that leaves an
expression undecided, the few entities in doubt are read and `by_document` decides. It also decides for entities that
the index omits.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from functools import lru_cache
from itertools import takewhile
from typing import Final

from annals.domain.filters import Conjunction, FilterExpression, FilterValue, Operator, depth, is_above
from annals.domain.filters.comparison import NO_REMAINDER, compare_numbers
from annals.domain.values.dot_path import PathWildcard, Step
from annals.projections.database.drivers import Database
from annals.projections.entities.filters.by_document import matches
from annals.projections.entities.filters.omitted_entities import OmittedEntities
from annals.projections.entities.filters.sql import (
    ALWAYS,
    SqlFragment,
    ancestor_key,
    and_,
    between,
    join_fragments,
    or_,
)
from annals.projections.entities.leaves import TEXT_LIMIT, path_key, path_step, path_text
from annals.projections.entities.rows import EntityRow, stored_row

COLUMNS: Final = ", ".join(EntityRow._fields)
#: The comparison operators in SQL.
_COMPARISONS: Final = {
    Operator.EQUAL: "=",
    Operator.LESS: "<",
    Operator.AT_MOST: "<=",
    Operator.MORE: ">",
    Operator.AT_LEAST: ">=",
}
#: The same by the signs that they accept: less, equal, more.
_COMPARISON_BY_SIGNS: Final = {frozenset(operator.value): compared for operator, compared in _COMPARISONS.items()}
_MEMBER_PATTERN: Final = r"(?:\.[^.\[\]'\"*]+|\['(?:[^']|'')*'\])"
_WILDCARD_PATTERNS: Final = {PathWildcard.MEMBER: _MEMBER_PATTERN, PathWildcard.ITEM: r"\[[0-9]+\]"}
#: Characters that both JSON and case folding leave unchanged.
_PLAIN_TEXT: Final = re.compile(r"[a-z0-9 ._:-]+")
#: The distinct paths of a type, each found by one step in an index. Texts have an index, and all other leaves another.
_DISTINCT_PATHS: Final = (
    "WITH RECURSIVE found(path) AS ("
    " SELECT min(path) FROM attribute WHERE type = ? AND text IS {0} AND path >= ? AND path < ?"
    " UNION ALL SELECT (SELECT min(path) FROM attribute WHERE type = ? AND text IS {0} AND path > found.path"
    " AND path < ?) FROM found WHERE found.path IS NOT NULL)"
    " SELECT path FROM found WHERE path IS NOT NULL"
)


@dataclass(frozen=True, slots=True)
class RowOverrides:
    """Entities that read differently from the index or from their current rows.

    The index does not have their last events yet, a past moment is read, or they have an xref. images: by tree key;
    None for a stream without a live entity at that moment. is_newer_only: the images are exactly those of the entities
    whose last events the index does not have.
    """

    images: Mapping[str, EntityRow | None] = field(default_factory=dict)
    is_newer_only: bool = False

    def keys_of_type(self, type: str) -> list[str]:
        """The tree keys of the images that are entities of a type."""
        return [key for key, row in self.images.items() if row is not None and row.type == type]


@dataclass(frozen=True, slots=True)
class LeafConditions:
    """The conditions in the `attribute` table that meet an expression, ignoring its negation.

    paths, values: alternative conditions on `a`; every value condition names one of the two partial indexes.
    additional_keys: keys of entities that meet it and that the conditions do not find. cost: rank as a driver, low is
    good.
    """

    paths: tuple[SqlFragment, ...]
    values: tuple[SqlFragment, ...]
    additional_keys: tuple[str, ...]
    cost: int


class FilterCompiler:
    """Compiles filters for one connection.

    base_url: absolute URL of the registry. key_range: the keys that all queries are limited to; owners' keys are
    outside it. row_overrides: None for the present.
    """

    def __init__(
        self, db: Database, base_url: str, key_range: tuple[str, str], row_overrides: RowOverrides | None = None
    ) -> None:
        self._db = db
        self._base_url = base_url
        self._key_range = key_range
        self._overrides = row_overrides if row_overrides and row_overrides.images else None
        self._leaves: dict[FilterExpression, LeafConditions] = {}
        self.omitted = OmittedEntities(db, key_range, row_overrides.images if row_overrides else ())

    def surviving_keys(self, conjunctions: Sequence[Conjunction], type: str, low: str, high: str) -> SqlFragment | None:
        """A query for the keys of a type's entities between two keys that pass a filter, without duplicates.

        None if there can be none. The keys cover whole subtrees of the type that the filter starts at.
        """
        key_queries = [
            self._select_keys(each, type, low, high)
            for each in conjunctions
            if is_above(each.type, type) or is_above(type, each.type)
        ]
        if not key_queries:
            return None
        return (
            key_queries[0]
            if len(key_queries) == 1
            else join_fragments(" UNION ", (each.wrap("SELECT key FROM ({}) s") for each in key_queries))
        )

    def _select_keys(self, conjunction: Conjunction, type: str, low: str, high: str) -> SqlFragment:
        keys = self._own_keys(conjunction, low, high)
        if type == conjunction.type:
            return keys
        if is_above(type, conjunction.type):
            owner = ancestor_key("k.key", conjunction.type, depth(type), self._db.find_function)
            return keys.wrap(f"SELECT DISTINCT {owner} AS key FROM ({{}}) AS k")
        descendants = keys.wrap(
            "SELECT e.tree_key AS key FROM ({}) AS k CROSS JOIN entity AS e"
            f" WHERE e.type = '{type}' AND e.tree_key > k.key || '!' AND e.tree_key < k.key || '\"'"
        )
        if self._overrides is None:
            return descendants
        owner = ancestor_key("i.key", type, depth(conjunction.type), self._db.find_function)
        overridden = and_(
            self._key_list(self._overrides.keys_of_type(type)).wrap("SELECT i.key FROM {} AS i WHERE 1 = 1"),
            keys.wrap(f"{owner} IN ({{}})"),
        )
        return join_fragments(" UNION ALL ", (and_(descendants, self.unchanged_condition("e.tree_key")), overridden))

    def _own_keys(self, conjunction: Conjunction, low: str, high: str) -> SqlFragment:
        """The entities of a conjunction's own type that it selects."""
        own_expressions = sorted(
            conjunction.for_type(conjunction.type), key=lambda each: self._leaf_conditions(each).cost
        )
        driver, *other_own_expressions = own_expressions
        has_positive_driver = not driver.operator.is_negative
        source = (
            self._driving_keys(driver, low, high) if has_positive_driver else self.all_keys(conjunction.type, low, high)
        )
        conditions = [
            self._probe_condition(expression, "d.key")
            for expression in (other_own_expressions if has_positive_driver else own_expressions)
        ]
        for expression in conjunction.expressions:
            if expression.type != conjunction.type:
                key = ancestor_key("d.key", conjunction.type, depth(expression.type), self._db.find_function)
                conditions.append(self._probe_condition(expression, key))
        return source if not conditions else and_(source.wrap("SELECT d.key FROM ({}) AS d WHERE 1 = 1"), *conditions)

    def all_keys(self, type: str, low: str, high: str) -> SqlFragment:
        """A query for the keys of all entities of a type between two keys."""
        start = SqlFragment(f"SELECT e.tree_key AS key FROM entity AS e WHERE e.type = '{type}'")
        current = and_(start, between("e.tree_key", low, high))
        if self._overrides is None:
            return current
        overridden_keys = [key for key in self._overrides.keys_of_type(type) if low < key < high]
        overridden = self._key_list(overridden_keys).wrap("SELECT i.key FROM {} AS i")
        return join_fragments(" UNION ALL ", (and_(current, self.unchanged_condition("e.tree_key")), overridden))

    def _driving_keys(self, expression: FilterExpression, low: str, high: str) -> SqlFragment:
        """The keys of the entities that meet an expression's positive form."""
        if expression.derived_attribute:
            condition = self._derived_condition(expression, "d.key")
            return and_(
                self.all_keys(expression.type, low, high).wrap("SELECT d.key FROM ({}) AS d WHERE 1 = 1"), condition
            )
        conditions = self._leaf_conditions(expression)
        distinct = "DISTINCT " if expression.has_wildcards or expression.operator is Operator.PRESENT else ""
        start = SqlFragment(
            f"SELECT {distinct}a.tree_key AS key FROM attribute AS a WHERE a.type = '{expression.type}'"
        )
        end = and_(between("a.tree_key", low, high), self.unchanged_condition("a.tree_key"))
        queries = [and_(start, path, value, end) for path in conditions.paths for value in conditions.values]
        if additional_keys := [key for key in conditions.additional_keys if low < key < high]:
            queries.append(self._key_list(additional_keys).wrap("SELECT i.key FROM {} AS i"))
        if len(queries) == 1:
            return queries[0]
        return join_fragments(
            " UNION " if distinct else " UNION ALL ", queries or [SqlFragment("SELECT '' AS key WHERE 1 = 0")]
        )

    def _probe_condition(self, expression: FilterExpression, key: str) -> SqlFragment:
        """Whether the entity with a key meets an expression."""
        negation = "NOT " if expression.operator.is_negative else ""
        if expression.derived_attribute:
            return self._derived_condition(expression, key).wrap(f"{negation}({{}})")
        conditions = self._leaf_conditions(expression)
        alternatives: list[SqlFragment] = []
        if conditions.paths and conditions.values:
            leaf = and_(SqlFragment(f"a.tree_key = {key}"), or_(conditions.paths), or_(conditions.values))
            leaf_exists = leaf.wrap("EXISTS (SELECT 1 FROM attribute AS a WHERE {})")
            alternatives.append(and_(leaf_exists, self.unchanged_condition(key)))
        if conditions.additional_keys:
            alternatives.append(self._in_list(key, conditions.additional_keys))
        return or_(alternatives or [SqlFragment("1 = 0")]).wrap(f"{negation}{{}}")

    def _derived_condition(self, expression: FilterExpression, key: str) -> SqlFragment:
        derived, filter_value = expression.derived_attribute, expression.value
        assert derived is not None, "only what is made from xids comes here"
        operator = expression.operator.positive
        if operator is Operator.PRESENT:
            return ALWAYS
        prefix = (self._base_url if derived.is_url else "").casefold()
        text = f"(CAST(? AS TEXT) || replace({key}, '!', '/') || CAST(? AS TEXT))"
        text_parts = (prefix, derived.suffix)
        if filter_value.has_wildcards:
            return SqlFragment(f"{text} LIKE ? ESCAPE '\\'", (*text_parts, _like_pattern(filter_value.pieces)))
        if filter_value.text is None:
            return SqlFragment("1 = 0")
        return SqlFragment(f"{text} {_COMPARISONS[operator]} ?", (*text_parts, filter_value.text))

    def _leaf_conditions(self, expression: FilterExpression) -> LeafConditions:
        """The leaf conditions of an expression; entities in doubt are decided at the first call."""
        conditions = self._leaves.get(expression)
        if conditions is None:
            conditions = self._leaves[expression] = self._compile(expression)
        return conditions

    def _compile(self, expression: FilterExpression) -> LeafConditions:
        if expression.derived_attribute:
            return LeafConditions((), (), (), 5)
        paths = self._path_conditions(expression)
        certain_conditions, doubtful_condition, cost = _value_conditions(expression)
        matches_by_key = (
            self._decide_doubtful(expression, paths, doubtful_condition) if doubtful_condition and paths else {}
        )
        additional_keys = [key for key, is_match in matches_by_key.items() if is_match]
        if matches_by_key and expression.value.number is not None:
            # A rounded number has the same double as other numbers, so the entities already decided are excluded.
            undecided = self._in_list("a.tree_key", matches_by_key).wrap("NOT ({})")
            certain_conditions = [and_(condition, undecided) for condition in certain_conditions]
        if self._overrides:
            additional_keys = [
                key for key in additional_keys if key not in self._overrides.images
            ] + self._past_matches(expression)
        additional_keys += self._matching_keys(expression, self.omitted.rows(expression.type))
        return LeafConditions(
            paths, tuple(certain_conditions), tuple(additional_keys), 9 if expression.operator.is_negative else cost
        )

    def _path_conditions(self, expression: FilterExpression) -> tuple[SqlFragment, ...]:
        """The alternative conditions on paths."""
        if expression.has_wildcards:
            existing_paths = self._wild_paths(expression)
            return (self._in_list("a.path", existing_paths),) if existing_paths else ()
        path = path_key(path_text(expression.path))
        exact_path = SqlFragment("a.path = ?", (path,))
        if expression.operator.positive is not Operator.PRESENT or expression.is_scalar:
            return (exact_path,)
        return exact_path, SqlFragment("a.path > ? AND a.path < ?", (f"{path}.", f"{path}/")), _items_condition(path)

    def _wild_paths(self, expression: FilterExpression) -> list[str]:
        """The existing paths that match a path with wildcards."""
        fixed_prefix = path_text(tuple(takewhile(lambda each: not isinstance(each, PathWildcard), expression.path)))
        suffix_pattern = r"(?:[.\[].*)?" if expression.operator.positive is Operator.PRESENT else ""
        path_pattern = re.compile(
            "".join(map(_step_pattern, enumerate(expression.path))) + suffix_pattern + r"\Z", re.DOTALL
        )
        low, high, type = fixed_prefix, fixed_prefix + "\U0010ffff", expression.type
        candidate_paths = [
            row[0]
            for null_test in ("NULL", "NOT NULL")
            for row in self._db.all(_DISTINCT_PATHS.format(null_test), (type, low, high, type, high))
        ]
        return [path for path in dict.fromkeys(candidate_paths) if path_pattern.match(path)]

    def _decide_doubtful(
        self, expression: FilterExpression, paths: Sequence[SqlFragment], doubtful_condition: SqlFragment
    ) -> dict[str, bool]:
        """Whether each entity in doubt meets the positive form of an expression, by key."""
        select = SqlFragment(
            f"SELECT DISTINCT {', '.join(f'e.{name}' for name in EntityRow._fields)} FROM attribute AS a"
            f" CROSS JOIN entity AS e WHERE e.tree_key = a.tree_key AND a.type = '{expression.type}'"
        )
        query = and_(
            select,
            or_(paths),
            doubtful_condition,
            between("a.tree_key", *self._key_range),
            *self._hint_conditions(expression.value),
        )
        rows = map(stored_row, self._db.stream(*query))
        is_negative = expression.operator.is_negative
        return {row.tree_key: matches(expression, row, self._base_url) is not is_negative for row in rows}

    def _hint_conditions(self, filter_value: FilterValue) -> tuple[SqlFragment, ...]:
        """A condition that skips most entities in doubt about a pattern: their JSON must contain a part of it."""
        plain_parts = (
            [plain_part for piece in filter_value.pieces for plain_part in _PLAIN_TEXT.findall(piece)]
            if filter_value.has_wildcards
            else []
        )
        if not plain_parts:
            return ()
        contains_part = SqlFragment(
            "lower(e.attributes) LIKE ?", (f"%{_escape_like(max(plain_parts, key=len))}%",)
        ).wrap("{} ESCAPE '\\'")
        # Characters outside ASCII may fold to ASCII.
        return (or_([contains_part, SqlFragment(self._db.non_ascii_condition.format("e.attributes"))]),)

    def _past_matches(self, expression: FilterExpression) -> list[str]:
        """The keys of the changed entities that met the positive form of an expression at the moment."""
        assert self._overrides is not None, "there is no then without a moment"
        images = self._overrides.images.values()
        return self._matching_keys(expression, (row for row in images if row and row.type == expression.type))

    def _matching_keys(self, expression: FilterExpression, rows: Iterable[EntityRow]) -> list[str]:
        """The keys of the rows that meet the positive form of an expression."""
        is_negative = expression.operator.is_negative
        return [row.tree_key for row in rows if matches(expression, row, self._base_url) is not is_negative]

    def unchanged_condition(self, column: str) -> SqlFragment:
        """A condition on a column of keys: their entities have not changed since the moment."""
        if self._overrides is None:
            return ALWAYS
        return self._in_list(column, self._overrides.images).wrap("NOT ({})")

    def _in_list(self, column: str, values: Collection[str]) -> SqlFragment:
        return SqlFragment(self._db.in_list(column), (self._db.list_parameter(values),))

    def _key_list(self, values: Collection[str]) -> SqlFragment:
        return SqlFragment(self._db.list_table, (self._db.list_parameter(values),))


def _step_pattern(numbered_step: tuple[int, Step]) -> str:
    index, step = numbered_step
    if isinstance(step, PathWildcard):
        return _WILDCARD_PATTERNS[step] if index else r"[^.\[]+" if step is PathWildcard.MEMBER else "(?!)"
    return re.escape(path_text([step]) if not index else f"[{step}]" if isinstance(step, int) else path_step(step))


def _items_condition(path: str) -> SqlFragment:
    return SqlFragment("a.path > ? AND a.path < ?", (f"{path}[", f"{path}\\"))


Conditions = tuple[list[SqlFragment], SqlFragment | None, int]


def _value_conditions(expression: FilterExpression) -> Conditions:
    """Conditions on leaves that certainly meet it, a condition on those in doubt, and the rank as a driver."""
    operator, filter_value = expression.operator.positive, expression.value
    if operator is Operator.PRESENT:
        return [SqlFragment("a.text IS NOT NULL"), SqlFragment("a.text IS NULL")], None, 3
    if filter_value.has_wildcards:
        return _pattern_conditions(filter_value.pieces)
    certain_conditions: list[SqlFragment] = []
    doubtful_conditions: list[SqlFragment] = []
    if filter_value.text is not None:
        _add_text_conditions(filter_value.text, _COMPARISONS[operator], certain_conditions, doubtful_conditions)
    if filter_value.boolean is not None:
        certain_conditions.append(_boolean_condition(filter_value.boolean, _COMPARISONS[operator]))
    if filter_value.number is not None:
        _add_number_conditions(filter_value.number, operator, certain_conditions, doubtful_conditions)
    return (
        certain_conditions,
        or_(doubtful_conditions) if doubtful_conditions else None,
        0 if operator is Operator.EQUAL else 2,
    )


def _add_text_conditions(
    text: str, comparison: str, certain_conditions: list[SqlFragment], doubtful_conditions: list[SqlFragment]
) -> None:
    key = text[:TEXT_LIMIT]
    if len(key) < TEXT_LIMIT:
        certain_conditions.append(
            _string_condition(SqlFragment(f"a.text {comparison} ?", (key,)), key if comparison == "=" else None)
        )
        return
    doubtful_conditions.append(SqlFragment("a.text = ?", (key,)))
    if comparison != "=":
        certain_conditions.append(_string_condition(SqlFragment(f"a.text {comparison[0]} ?", (key,)), None))


def _boolean_condition(boolean: bool, comparison: str) -> SqlFragment:
    """The condition for booleans, which have texts and numbers.

    A single text keeps the index in the order of its keys.
    """
    texts = f"a.text = '{str(boolean).lower()}'" if comparison == "=" else "a.text IN ('false', 'true')"
    return SqlFragment(f"{texts} AND a.number {comparison} ?", (float(boolean),))


def _string_condition(condition: SqlFragment, only_text: str | None) -> SqlFragment:
    """The condition for strings; it excludes booleans, which have texts too. only_text: the one text that can match."""
    if only_text is not None and only_text not in ("true", "false"):
        return condition
    return and_(condition, SqlFragment("(a.text NOT IN ('false', 'true') OR a.number IS NULL)"))


def _add_number_conditions(
    number: Decimal, operator: Operator, certain_conditions: list[SqlFragment], doubtful_conditions: list[SqlFragment]
) -> None:
    """Adds conditions for a number: other doubles sort correctly; the same double is the number or a rounded one."""
    double = float(number)
    signs = {sign for sign in (-1, 1) if sign in operator.value}
    if compare_numbers(double, number) in operator.value:
        signs.add(0)
    if signs:
        condition = and_(
            SqlFragment("a.text IS NULL"),
            SqlFragment(f"a.number {_COMPARISON_BY_SIGNS[frozenset(signs)]} ?", (double,)),
        )
        # A single number keeps the index in the order of its keys.
        certain_conditions.append(
            and_(condition, SqlFragment(f"a.remainder = '{NO_REMAINDER}'")) if signs == {0} else condition
        )
    doubtful_conditions.append(SqlFragment(f"a.remainder <> '{NO_REMAINDER}' AND a.number = ?", (double,)))


def _pattern_conditions(pieces: tuple[str, ...]) -> Conditions:
    """The conditions for a pattern: its prefix is a range; the key decides the rest if it holds the whole text."""
    prefix = pieces[0]
    key = prefix[:TEXT_LIMIT]
    prefix_condition = (
        SqlFragment("a.text >= ? AND a.text < ?", (key, _prefix_end(key))) if key else SqlFragment("a.text IS NOT NULL")
    )
    text_condition = _string_condition(prefix_condition, None)
    if not any(pieces[1:]) and len(prefix) <= TEXT_LIMIT:
        return [text_condition], None, 1
    is_untruncated = SqlFragment(f"length(a.text) < {TEXT_LIMIT}")
    like_condition = SqlFragment("a.text LIKE ? ESCAPE '\\'", (_like_pattern(pieces),))
    return (
        [and_(text_condition, like_condition, is_untruncated)],
        and_(prefix_condition, SqlFragment(f"length(a.text) = {TEXT_LIMIT}")),
        1 if key else 4,
    )


@lru_cache(maxsize=256)
def _prefix_end(prefix: str) -> str:
    """The first text after all texts with a prefix."""
    for index in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[index]) + 1
        if code <= 0x10FFFF:
            return prefix[:index] + chr(0xE000 if code == 0xD800 else code)
    return "\U0010ffff" * (TEXT_LIMIT + 1)


def _like_pattern(pieces: Sequence[str]) -> str:
    return "%".join(map(_escape_like, pieces))


def _escape_like(text: str) -> str:
    return re.sub(r"([%_\\])", r"\\\1", text)
