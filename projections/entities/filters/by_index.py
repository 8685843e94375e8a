"""Compiles filters to SQL over the attribute index.

A conjunction selects the entities of its deepest type that meet its expressions on that type and whose owners meet the
others: a set of id keys. A filter keeps, for each conjunction, these entities, all their descendants and all their
ancestors. One expression drives each set, by a range of the index. Of the others, those that ask for single values are
looked up for each of its results. The rest is decided on the results' JSON if they are few, or else by the sets of the
entities that meet each expression.

The index holds the beginnings of texts. Where that leaves an expression undecided, the few entities in doubt are read
and `by_document` decides. It also decides for entities that the index omits.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Final

from annals.domain.filters import Conjunction, FilterExpression, FilterValue, Operator, depth, is_above
from annals.domain.values.dot_path import PathWildcard, Step
from annals.projections.database.drivers import Database
from annals.projections.entities.filters.by_document import matches
from annals.projections.entities.filters.omitted_entities import OmittedEntities
from annals.projections.entities.filters.sql import ALWAYS, SqlFragment, and_, between, join_fragments, or_
from annals.projections.entities.filters.value_conditions import (
    COMPARISONS,
    ValueConditions,
    like_pattern,
    value_conditions,
)
from annals.projections.entities.id_keys import (
    descendants_condition,
    id_key,
    id_key_bound,
    owner_expression,
    owner_id_key,
    tree_key_expression,
)
from annals.projections.entities.index_paths import find_paths, paths_between
from annals.projections.entities.leaves import path_key, path_step, path_text
from annals.projections.entities.rows import ROW_COLUMNS, EntityRow, may_contain, stored_row

COLUMNS: Final = ", ".join(ROW_COLUMNS)
#: The maximum number of entities whose JSON decides what the index has no single value for.
MAX_DECIDED: Final = 1000
_MEMBER_PATTERN: Final = r"(?:\.[^.\[\]'\"*]+|\['(?:[^']|'')*'\])"
_WILDCARD_PATTERNS: Final = {PathWildcard.MEMBER: _MEMBER_PATTERN, PathWildcard.ITEM: r"\[[0-9]+\]"}
#: Characters that both JSON and case folding leave unchanged.
_PLAIN_TEXT: Final = re.compile(r"[a-z0-9 ._:-]+")


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
        """The id keys of the images that are entities of a type."""
        return [row.id_key for row in self.images.values() if row is not None and row.type == type]

    def changed_keys_of_type(self, type: str) -> list[str]:
        """The id keys of all streams of a type, also of those without an entity."""
        return [id_key(key) for key in self.images if ".".join(key[1:].split("!")[::2]) == type]


@dataclass(frozen=True, slots=True)
class LeafConditions:
    """What the leaves of the entities are that meet an expression, ignoring its negation.

    paths: numbers. additional_keys: id keys of entities that meet it and that the leaves do not find.
    """

    paths: tuple[int, ...]
    values: ValueConditions
    additional_keys: tuple[str, ...] = ()

    @property
    def needs_ranges(self) -> bool:
        """Whether the index has no single values to look up."""
        return bool(self.paths and self.values.ranges)


class FilterCompiler:
    """Compiles filters for one connection. All keys here are id keys.

    base_url: absolute URL of the registry. key_range: the tree keys that all queries are limited to; owners' keys are
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
        self._decided: dict[tuple[Conjunction, str, str], SqlFragment] = {}
        self.omitted = OmittedEntities(db, key_range, row_overrides.images if row_overrides else ())

    def surviving_keys(self, conjunctions: Sequence[Conjunction], type: str, low: str, high: str) -> SqlFragment | None:
        """A query for the keys of a type's entities between two tree keys that pass a filter, without duplicates.

        None if there can be none. The tree keys cover whole subtrees of the type that the filter starts at.
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
        keys = self._own_keys(conjunction, *_range(conjunction.type, low, high))
        if type == conjunction.type:
            return keys
        if is_above(type, conjunction.type):
            owner = owner_expression(self._db, "k.key", conjunction.type, depth(type))
            return keys.wrap(f"SELECT DISTINCT {owner} AS key FROM ({{}}) AS k")
        below = descendants_condition("e.id_key", "k.key", depth(conjunction.type))
        descendants = keys.wrap(
            f"SELECT e.id_key AS key FROM ({{}}) AS k CROSS JOIN entity AS e WHERE e.type = '{type}' AND {below}"
        )
        if self._overrides is None:
            return descendants
        owner = owner_expression(self._db, "i.key", type, depth(conjunction.type))
        overridden = and_(
            self._key_list(self._overrides.keys_of_type(type)).wrap("SELECT i.key FROM {} AS i WHERE 1 = 1"),
            keys.wrap(f"{owner} IN ({{}})"),
        )
        return join_fragments(
            " UNION ALL ", (and_(descendants, self.unchanged_condition("e.id_key", type)), overridden)
        )

    def _own_keys(self, conjunction: Conjunction, low: str, high: str) -> SqlFragment:
        """The entities of a conjunction's own type that it selects."""
        type = conjunction.type
        driver = min(conjunction.for_type(type), key=self._rank)
        others = [each for each in conjunction.expressions if each is not driver]
        if driver.operator.is_negative:
            source, others = self._all_keys(type, low, high), [driver, *others]
        else:
            source = self._driving_keys(driver, low, high)
        looked_up = [each for each in others if not self._leaf_conditions(each).needs_ranges]
        remaining = [each for each in others if self._leaf_conditions(each).needs_ranges]
        if looked_up:
            conditions = [self._look_up_condition(each, self._owner_key(each, type)) for each in looked_up]
            source = and_(source.wrap("SELECT d.key FROM ({}) AS d WHERE 1 = 1"), *conditions)
        if not remaining:
            return source
        if (conjunction, low, high) not in self._decided:
            self._decided[conjunction, low, high] = self._with_ranges(source, type, remaining)
        return self._decided[conjunction, low, high]

    def _rank(self, expression: FilterExpression) -> int:
        if expression.operator.is_negative:
            return 9
        return 5 if expression.derived_attribute else self._leaf_conditions(expression).values.rank

    def _with_ranges(self, source: SqlFragment, type: str, expressions: Sequence[FilterExpression]) -> SqlFragment:
        """Those of a query's keys whose entities and owners meet expressions that ask for ranges of values."""
        keys = [key for (key,) in self._db.all(*source.wrap(f"SELECT d.key FROM ({{}}) AS d LIMIT {MAX_DECIDED + 1}"))]
        if len(keys) <= MAX_DECIDED:
            return self._key_list(self._decided_keys(keys, type, expressions)).wrap("SELECT i.key FROM {} AS i")
        for expression in expressions:
            owner = self._owner_key(expression, type)
            is_in = "NOT IN" if expression.operator.is_negative else "IN"
            matching = self._driving_keys(expression, *_range(expression.type, *self._owners_range(expression, type)))
            if owner == "d.key":
                operator = "EXCEPT" if expression.operator.is_negative else "INTERSECT"
                source = join_fragments(
                    f" {operator} ", (part.wrap("SELECT d.key FROM ({}) AS d") for part in (source, matching))
                )
            else:
                condition = matching.wrap(f"{owner} {is_in} (SELECT m.key FROM ({{}}) AS m)")
                source = and_(source.wrap("SELECT d.key FROM ({}) AS d WHERE 1 = 1"), condition)
        return source

    def _owners_range(self, expression: FilterExpression, type: str) -> tuple[str, str]:
        return self._key_range if expression.type == type else ("!", '"')

    def _decided_keys(self, keys: Sequence[str], type: str, expressions: Sequence[FilterExpression]) -> Sequence[str]:
        """Those of some keys whose entities and owners meet some expressions."""
        for expression in expressions:
            owner_depth = depth(expression.type)
            owners = {key: owner_id_key(key, owner_depth) for key in keys}
            rows = self._rows_of(expression.type, set(owners.values()))
            matching = {row.id_key for row in rows if matches(expression, row, self._base_url)}
            keys = [key for key in keys if owners[key] in matching]
        return keys

    def _rows_of(self, type: str, keys: Collection[str]) -> Iterable[EntityRow]:
        select = SqlFragment(f"SELECT {COLUMNS} FROM entity AS e WHERE e.type = ?", (type,))
        query = and_(select, self._in_list("e.id_key", keys), self.unchanged_condition("e.id_key", type))
        yield from map(stored_row, self._db.all(*query))
        images = self._overrides.images.values() if self._overrides else ()
        yield from (row for row in images if row and row.type == type and row.id_key in keys)

    def _owner_key(self, expression: FilterExpression, type: str) -> str:
        """SQL for the key of the entity that an expression is about, for the entity of a type with the key `d.key`."""
        return owner_expression(self._db, "d.key", type, depth(expression.type))

    def all_keys(self, type: str, low: str, high: str) -> SqlFragment:
        """A query for the keys of all entities of a type between two tree keys."""
        return self._all_keys(type, *_range(type, low, high))

    def _all_keys(self, type: str, low: str, high: str) -> SqlFragment:
        start = SqlFragment(f"SELECT e.id_key AS key FROM entity AS e WHERE e.type = '{type}'")
        current = and_(start, between("e.id_key", low, high))
        if self._overrides is None:
            return current
        overridden_keys = [key for key in self._overrides.keys_of_type(type) if low < key < high]
        overridden = self._key_list(overridden_keys).wrap("SELECT i.key FROM {} AS i")
        return join_fragments(" UNION ALL ", (and_(current, self.unchanged_condition("e.id_key", type)), overridden))

    def _driving_keys(self, expression: FilterExpression, low: str, high: str) -> SqlFragment:
        """The keys of the entities that meet an expression's positive form."""
        if expression.derived_attribute:
            condition = self._derived_condition(expression, "d.key")
            return and_(
                self._all_keys(expression.type, low, high).wrap("SELECT d.key FROM ({}) AS d WHERE 1 = 1"), condition
            )
        conditions = self._leaf_conditions(expression)
        distinct = "DISTINCT " if len(conditions.paths) > 1 else ""
        start = SqlFragment(f"SELECT {distinct}a.id_key AS key FROM attribute AS a WHERE 1 = 1")
        end = and_(between("a.id_key", low, high), self.unchanged_condition("a.id_key", expression.type))
        path = self._path_condition(conditions.paths)
        values = (
            *(SqlFragment("a.value = ?", (value,)) for value in conditions.values.exact),
            *conditions.values.ranges,
        )
        queries = [and_(start, path, value, end) for value in values] if conditions.paths else []
        if additional_keys := [key for key in conditions.additional_keys if low < key < high]:
            queries.append(self._key_list(additional_keys).wrap("SELECT i.key FROM {} AS i"))
        return join_fragments(
            " UNION " if distinct else " UNION ALL ",
            queries or [SqlFragment("SELECT a.id_key AS key FROM attribute AS a WHERE 1 = 0")],
        )

    def _look_up_condition(self, expression: FilterExpression, key: str) -> SqlFragment:
        """Whether the entity with a key meets an expression that asks for single values."""
        negation = "NOT " if expression.operator.is_negative else ""
        if expression.derived_attribute:
            return self._derived_condition(expression, key).wrap(f"{negation}({{}})")
        conditions = self._leaf_conditions(expression)
        alternatives: list[SqlFragment] = []
        if conditions.paths and conditions.values.exact:
            values = SqlFragment(
                f"a.value IN ({', '.join('?' for _ in conditions.values.exact)})", conditions.values.exact
            )
            leaf = and_(self._path_condition(conditions.paths), values, SqlFragment(f"a.id_key = {key}"))
            leaf_exists = leaf.wrap("EXISTS (SELECT 1 FROM attribute AS a WHERE {})")
            alternatives.append(and_(leaf_exists, self.unchanged_condition(key, expression.type)))
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
        xid = f"replace({tree_key_expression(key, expression.type)}, '!', '/')"
        text = f"(CAST(? AS TEXT) || {xid} || CAST(? AS TEXT))"
        text_parts = (prefix, derived.suffix)
        if filter_value.has_wildcards:
            return SqlFragment(f"{text} LIKE ? ESCAPE '\\'", (*text_parts, like_pattern(filter_value.pieces)))
        if filter_value.text is None:
            return SqlFragment("1 = 0")
        return SqlFragment(f"{text} {COMPARISONS[operator]} ?", (*text_parts, filter_value.text))

    def _leaf_conditions(self, expression: FilterExpression) -> LeafConditions:
        """The leaf conditions of an expression; entities in doubt are decided at the first call."""
        conditions = self._leaves.get(expression)
        if conditions is None:
            conditions = self._leaves[expression] = self._compile(expression)
        return conditions

    def _compile(self, expression: FilterExpression) -> LeafConditions:
        if expression.derived_attribute:
            return LeafConditions((), ValueConditions())
        paths = self._paths(expression)
        values = value_conditions(expression, self._db.like_condition)
        additional_keys = self._decide_doubtful(expression, paths, values.doubtful) if values.doubtful and paths else []
        if self._overrides:
            changed_keys = {*self._overrides.changed_keys_of_type(expression.type)}
            additional_keys = [key for key in additional_keys if key not in changed_keys]
            images = self._overrides.images.values()
            additional_keys += self._matching_keys(expression, (row for row in images if row))
        additional_keys += self._matching_keys(expression, self.omitted.rows(expression.type))
        return LeafConditions(paths, values, tuple(additional_keys))

    def _paths(self, expression: FilterExpression) -> tuple[int, ...]:
        """The numbers of an expression's paths."""
        type, is_present = expression.type, expression.operator.positive is Operator.PRESENT
        if expression.has_wildcards:
            return self._wild_paths(expression)
        path = path_key(path_text(expression.path))
        if not is_present or expression.is_scalar:
            return tuple(number for number, _ in find_paths(self._db, type, [path]))
        nested = (
            *paths_between(self._db, type, f"{path}.", f"{path}/"),
            *paths_between(self._db, type, f"{path}[", f"{path}\\"),
        )
        return tuple(number for number, _ in (*find_paths(self._db, type, [path]), *nested))

    def _wild_paths(self, expression: FilterExpression) -> tuple[int, ...]:
        """The numbers of the paths that match a path with wildcards."""
        fixed_prefix = path_text(tuple(takewhile(lambda each: not isinstance(each, PathWildcard), expression.path)))
        suffix_pattern = r"(?:[.\[].*)?" if expression.operator.positive is Operator.PRESENT else ""
        path_pattern = re.compile(
            "".join(map(_step_pattern, enumerate(expression.path))) + suffix_pattern + r"\Z", re.DOTALL
        )
        candidates = paths_between(self._db, expression.type, fixed_prefix, fixed_prefix + "\U0010ffff")
        return tuple(number for number, path in candidates if path_pattern.match(path))

    def _path_condition(self, paths: Sequence[int]) -> SqlFragment:
        return SqlFragment("a.path = ?", (paths[0],)) if len(paths) == 1 else self._in_list("a.path", paths)

    def _decide_doubtful(
        self, expression: FilterExpression, paths: Sequence[int], doubtful_condition: SqlFragment
    ) -> list[str]:
        """The keys of the entities in doubt that meet the positive form of an expression."""
        # A subquery without DISTINCT is part of the join; SQLite then applies the range of keys to both tables, and
        # prefers it to the equality of keys.
        doubtful_keys = and_(
            SqlFragment("SELECT DISTINCT a.id_key FROM attribute AS a WHERE 1 = 1"),
            self._path_condition(paths),
            doubtful_condition,
            between("a.id_key", *_range(expression.type, *self._key_range)),
        )
        columns = ", ".join(f"e.{name}" for name in ROW_COLUMNS)
        query = doubtful_keys.wrap(
            f"SELECT {columns} FROM ({{}}) AS d CROSS JOIN entity AS e"
            f" WHERE e.type = '{expression.type}' AND e.id_key = d.id_key"
        )
        rows, hint = self._db.stream(*query), _hint(expression.value)
        return self._matching_keys(expression, map(stored_row, (row for row in rows if may_contain(row, hint))))

    def _matching_keys(self, expression: FilterExpression, rows: Iterable[EntityRow]) -> list[str]:
        """The keys of the rows of an expression's type that meet its positive form."""
        is_negative = expression.operator.is_negative
        return [
            row.id_key
            for row in rows
            if row.type == expression.type and matches(expression, row, self._base_url) is not is_negative
        ]

    def unchanged_condition(self, column: str, type: str) -> SqlFragment:
        """A condition on a column of keys of a type: their entities have not changed since the moment."""
        if self._overrides is None:
            return ALWAYS
        return self._in_list(column, self._overrides.changed_keys_of_type(type)).wrap("NOT ({})")

    def _in_list(self, column: str, values: Collection[str | int]) -> SqlFragment:
        return SqlFragment(self._db.in_list(column), (self._db.list_parameter(values),))

    def _key_list(self, values: Collection[str]) -> SqlFragment:
        return SqlFragment(self._db.list_table, (self._db.list_parameter(values),))


def _hint(filter_value: FilterValue) -> str:
    """A text that the JSON of every entity contains that matches a filter's pattern; empty if none is known."""
    pieces = filter_value.pieces if filter_value.has_wildcards else ()
    return max((part for piece in pieces for part in _PLAIN_TEXT.findall(piece)), key=len, default="")


def _range(type: str, low: str, high: str) -> tuple[str, str]:
    """The bounds of id keys of a type for those of tree keys."""
    return id_key_bound(type, low), id_key_bound(type, high)


def _step_pattern(numbered_step: tuple[int, Step]) -> str:
    index, step = numbered_step
    if isinstance(step, PathWildcard):
        return _WILDCARD_PATTERNS[step] if index else r"[^.\[]+" if step is PathWildcard.MEMBER else "(?!)"
    return re.escape(path_text([step]) if not index else f"[{step}]" if isinstance(step, int) else path_step(step))
