"""Compiles filters to SQL over the attribute index.

A conjunction selects the entities of its deepest type that meet its expressions on that type and whose owners meet the
others: a set of id keys. A filter keeps, for each conjunction, these entities, all their descendants and all their
ancestors. One expression drives each set, by a range of the index. Of the others, those that ask for single values are
looked up for each of its results. The rest is decided on the results' JSON if they are few, or else by the sets of the
entities that meet each expression. In a small part of a large registry, a pattern that would have to be compared with
all values of the registry drives nothing: all entities of the part are decided.

`leaf_conditions` says which leaves meet an expression, and which entities do that the index cannot decide.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from annals.domain.filters import Conjunction, FilterExpression, Operator, depth, is_above
from annals.projections.database.drivers import Database
from annals.projections.entities.filters.by_document import matches
from annals.projections.entities.filters.leaf_conditions import LeafConditionCompiler, path_condition
from annals.projections.entities.filters.omitted_entities import OmittedEntities
from annals.projections.entities.filters.row_overrides import RowOverrides, unchanged_condition
from annals.projections.entities.filters.sql import (
    ALWAYS,
    NEVER,
    SqlFragment,
    and_,
    in_list,
    join_fragments,
    key_list,
    or_,
)
from annals.projections.entities.filters.value_conditions import COMPARISONS, DrivingRank, like_pattern
from annals.projections.entities.id_keys import (
    descendants_condition,
    id_key_bound,
    owner_expression,
    owner_id_key,
    tree_key_expression,
    tree_key_of,
)
from annals.projections.entities.rows import ROW_COLUMNS, EntityRow, stored_row
from annals.projections.entities.visibility import EVERYTHING, Visibility

COLUMNS: Final = ", ".join(ROW_COLUMNS)
#: The maximum number of entities whose JSON decides what the index has no single value for.
MAX_DECIDED: Final = 1000
#: The number of leaves that are compared with a pattern in the time in which MAX_DECIDED entities are decided by their
#: JSON.
MANY_LEAVES: Final = 20_000


class FilterCompiler:
    """Compiles filters for one connection. All keys here are id keys.

    base_url: absolute URL of the registry. key_range: the tree keys that all queries are limited to; owners' keys are
    outside it. row_overrides: None for the present, otherwise with visible entities only.
    """

    def __init__(
        self,
        db: Database,
        base_url: str,
        key_range: tuple[str, str],
        row_overrides: RowOverrides | None = None,
        visibility: Visibility = EVERYTHING,
    ) -> None:
        self._db = db
        self._base_url = base_url
        self._key_range = key_range
        self._visibility = visibility
        self._overrides = row_overrides or None
        self._compiled: dict[tuple[Conjunction, str, str], SqlFragment] = {}
        self.omitted = OmittedEntities(db, key_range, row_overrides.keys if row_overrides else (), visibility)
        self._leaves = LeafConditionCompiler(db, base_url, key_range, self._overrides, self.omitted, visibility)

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
            key_list(self._db, self._overrides.keys_of_type(type)).wrap("SELECT i.key FROM {} AS i WHERE 1 = 1"),
            keys.wrap(f"{owner} IN ({{}})"),
        )
        return join_fragments(
            " UNION ALL ", (and_(descendants, self.unchanged_condition("e.id_key", type)), overridden)
        )

    def _own_keys(self, conjunction: Conjunction, low: str, high: str) -> SqlFragment:
        """The entities of a conjunction's own type that it selects; compiled once, which may read some of them."""
        key = conjunction, low, high
        if key not in self._compiled:
            self._compiled[key] = self._compile(*key)
        return self._compiled[key]

    def _compile(self, conjunction: Conjunction, low: str, high: str) -> SqlFragment:
        type = conjunction.type
        driver = min(conjunction.for_type(type), key=self._leaves.rank)
        others = [each for each in conjunction.expressions if each is not driver]
        if driver.operator.is_negative or self._is_small_part(driver, low, high):
            source, others = self._all_keys(type, low, high), [driver, *others]
        else:
            source = self._driving_keys(driver, low, high)
        looked_up = [each for each in others if not self._leaves.needs_ranges(each)]
        remaining = [each for each in others if self._leaves.needs_ranges(each)]
        if looked_up:
            conditions = [self._look_up_condition(each, self._owner_key(each, type)) for each in looked_up]
            source = and_(source.wrap("SELECT d.key FROM ({}) AS d WHERE 1 = 1"), *conditions)
        return self._with_ranges(source, type, remaining) if remaining else source

    def _is_small_part(self, driver: FilterExpression, low: str, high: str) -> bool:
        """Whether it is faster to decide all entities between two keys by their JSON than to read all values."""
        is_pattern = self._leaves.rank(driver) is DrivingRank.PATTERN and self._leaves.needs_ranges(driver)
        if not is_pattern or not self._leaves.has_more_leaves(driver, MANY_LEAVES):
            return False
        keys = self._all_keys(driver.type, low, high).wrap(f"SELECT 1 FROM ({{}}) AS k LIMIT {MAX_DECIDED + 1}")
        return len(self._db.all(*keys)) <= MAX_DECIDED

    def _with_ranges(self, source: SqlFragment, type: str, expressions: Sequence[FilterExpression]) -> SqlFragment:
        """Those of a query's keys whose entities and owners meet expressions that ask for ranges of values."""
        keys = [key for (key,) in self._db.all(*source.wrap(f"SELECT d.key FROM ({{}}) AS d LIMIT {MAX_DECIDED + 1}"))]
        if len(keys) <= MAX_DECIDED:
            return key_list(self._db, self._decided_keys(keys, type, expressions)).wrap("SELECT i.key FROM {} AS i")
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
        query = and_(select, in_list(self._db, "e.id_key", keys), self.unchanged_condition("e.id_key", type))
        yield from map(stored_row, self._db.all(*query))
        if self._overrides:
            overridden_keys = [tree_key_of(type, key) for key in self._overrides.keys_of_type(type) if key in keys]
            yield from self._overrides.rows_by_key(overridden_keys).values()

    def _owner_key(self, expression: FilterExpression, type: str) -> str:
        """SQL for the key of the entity that an expression is about, for the entity of a type with the key `d.key`."""
        return owner_expression(self._db, "d.key", type, depth(expression.type))

    def all_keys(self, type: str, low: str, high: str) -> SqlFragment:
        """A query for the keys of all entities of a type between two tree keys."""
        return self._all_keys(type, *_range(type, low, high))

    def _all_keys(self, type: str, low: str, high: str) -> SqlFragment:
        start = SqlFragment(f"SELECT e.id_key AS key FROM entity AS e WHERE e.type = '{type}'")
        current = and_(start, self.visible_condition("e.id_key", type, low, high))
        if self._overrides is None:
            return current
        overridden_keys = [key for key in self._overrides.keys_of_type(type) if low < key < high]
        overridden = key_list(self._db, overridden_keys).wrap("SELECT i.key FROM {} AS i")
        return join_fragments(" UNION ALL ", (and_(current, self.unchanged_condition("e.id_key", type)), overridden))

    def _driving_keys(self, expression: FilterExpression, low: str, high: str) -> SqlFragment:
        """The keys of the entities that meet an expression's positive form."""
        if expression.derived_attribute:
            condition = self._derived_condition(expression, "d.key")
            return and_(
                self._all_keys(expression.type, low, high).wrap("SELECT d.key FROM ({}) AS d WHERE 1 = 1"), condition
            )
        conditions = self._leaves.conditions(expression)
        distinct = "DISTINCT " if len(conditions.paths) > 1 else ""
        start = SqlFragment(f"SELECT {distinct}a.id_key AS key FROM attribute AS a WHERE 1 = 1")
        end = and_(
            self.visible_condition("a.id_key", expression.type, low, high),
            self.unchanged_condition("a.id_key", expression.type),
        )
        path = path_condition(self._db, conditions.paths)
        values = (
            *(SqlFragment("a.value = ?", (value,)) for value in conditions.values.exact),
            *conditions.values.ranges,
        )
        queries = [and_(start, path, value, end) for value in values] if conditions.paths else []
        if additional_keys := [key for key in conditions.additional_keys if low < key < high]:
            queries.append(key_list(self._db, additional_keys).wrap("SELECT i.key FROM {} AS i"))
        return join_fragments(
            " UNION " if conditions.finds_keys_twice else " UNION ALL ",
            queries or [SqlFragment("SELECT a.id_key AS key FROM attribute AS a WHERE 1 = 0")],
        )

    def _look_up_condition(self, expression: FilterExpression, key: str) -> SqlFragment:
        """Whether the entity with a key meets an expression that asks for single values."""
        negation = "NOT " if expression.operator.is_negative else ""
        if expression.derived_attribute:
            return self._derived_condition(expression, key).wrap(f"{negation}({{}})")
        conditions = self._leaves.conditions(expression)
        alternatives: list[SqlFragment] = []
        if conditions.paths and conditions.values.exact:
            values = SqlFragment(
                f"a.value IN ({', '.join('?' for _ in conditions.values.exact)})", conditions.values.exact
            )
            leaf = and_(path_condition(self._db, conditions.paths), values, SqlFragment(f"a.id_key = {key}"))
            leaf_exists = leaf.wrap("EXISTS (SELECT 1 FROM attribute AS a WHERE {})")
            alternatives.append(and_(leaf_exists, self.unchanged_condition(key, expression.type)))
        if conditions.additional_keys:
            alternatives.append(in_list(self._db, key, conditions.additional_keys))
        return or_(alternatives or [NEVER]).wrap(f"{negation}{{}}")

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
            return NEVER
        return SqlFragment(f"{text} {COMPARISONS[operator]} ?", (*text_parts, filter_value.text))

    def visible_condition(self, column: str, type: str, low: str, high: str) -> SqlFragment:
        """A condition on a column of keys of a type: they are visible and between two others."""
        return self._visibility.id_keys(self._db, column, type, low, high)

    def unchanged_condition(self, column: str, type: str) -> SqlFragment:
        """A condition on a column of keys of a type: their entities have not changed since the moment."""
        return unchanged_condition(self._db, self._overrides, column, type)


def _range(type: str, low: str, high: str) -> tuple[str, str]:
    """The bounds of id keys of a type for those of tree keys."""
    return id_key_bound(type, low), id_key_bound(type, high)
