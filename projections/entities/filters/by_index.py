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

from domain.filters import Conjunction, FilterExpression, FilterValue, Operator, depth, is_above
from domain.filters.comparison import NO_REMAINDER, compare_numbers
from domain.values.dot_path import PathWildcard, Step
from projections.database.drivers import Database
from projections.entities.filters.by_document import matches
from projections.entities.filters.omitted_entities import OmittedEntities
from projections.entities.filters.sql import ALWAYS, SqlFragment, ancestor_key, and_, between, join_fragments, or_
from projections.entities.leaves import TEXT_LIMIT, path_key, path_step, path_text
from projections.entities.rows import EntityRow, stored_row

COLUMNS: Final = ", ".join(EntityRow._fields)
#: The comparison operators in SQL.
_COMPARED: Final = {
    Operator.EQUAL: "=",
    Operator.LESS: "<",
    Operator.AT_MOST: "<=",
    Operator.MORE: ">",
    Operator.AT_LEAST: ">=",
}
#: The same by the signs that they accept: less, equal, more.
_SIGNS: Final = {frozenset(operator.value): compared for operator, compared in _COMPARED.items()}
_MEMBER: Final = r"(?:\.[^.\[\]'\"*]+|\['(?:[^']|'')*'\])"
_WILD: Final = {PathWildcard.MEMBER: _MEMBER, PathWildcard.ITEM: r"\[[0-9]+\]"}
#: Characters that both JSON and case folding leave unchanged.
_PLAIN: Final = re.compile(r"[a-z0-9 ._:-]+")
#: The distinct paths of a type, each found by one step in an index. Texts have an index, and all other leaves another.
_PATHS: Final = (
    "WITH RECURSIVE found(path) AS ("
    " SELECT min(path) FROM attribute WHERE type = ? AND text IS {0} AND path >= ? AND path < ?"
    " UNION ALL SELECT (SELECT min(path) FROM attribute WHERE type = ? AND text IS {0} AND path > found.path"
    " AND path < ?) FROM found WHERE found.path IS NOT NULL)"
    " SELECT path FROM found WHERE path IS NOT NULL"
)


@dataclass(frozen=True, slots=True)
class RowOverrides:
    """Entities that read differently from their current rows, at a past moment or because of an xref.

    images: by tree key; None for a stream without a live entity at that moment.
    """

    images: Mapping[str, EntityRow | None] = field(default_factory=dict)

    def keys_of_type(self, type: str) -> list[str]:
        """The tree keys of the images that are entities of a type."""
        return [key for key, row in self.images.items() if row is not None and row.type == type]


@dataclass(frozen=True, slots=True)
class LeafConditions:
    """The conditions in the `attribute` table that meet an expression, ignoring its negation.

    paths, values: alternative conditions on `a`; every value condition names one of the two partial indexes.
    also: keys of entities that meet it and that the conditions do not find. cost: rank as a driver, low is good.
    """

    paths: tuple[SqlFragment, ...]
    values: tuple[SqlFragment, ...]
    also: tuple[str, ...]
    cost: int


class FilterCompiler:
    """Compiles filters for one connection.

    base: absolute URL of the registry. range: the keys that all queries are limited to; owners' keys are outside it.
    moment: None for the present.
    """

    def __init__(self, db: Database, base: str, range: tuple[str, str], moment: RowOverrides | None = None) -> None:
        self._db = db
        self._base = base
        self._range = range
        self._moment = moment if moment and moment.images else None
        self._leaves: dict[FilterExpression, LeafConditions] = {}
        self.omitted = OmittedEntities(db, range, moment.images if moment else ())

    def surviving_keys(self, conjunctions: Sequence[Conjunction], type: str, low: str, high: str) -> SqlFragment | None:
        """A query for the keys of a type's entities between two keys that pass a filter, without duplicates.

        None if there can be none. The keys cover whole subtrees of the type that the filter starts at.
        """
        sets = [
            self._set(each, type, low, high)
            for each in conjunctions
            if is_above(each.type, type) or is_above(type, each.type)
        ]
        if not sets:
            return None
        return (
            sets[0]
            if len(sets) == 1
            else join_fragments(" UNION ", (each.within("SELECT key FROM ({}) s") for each in sets))
        )

    def _set(self, conjunction: Conjunction, type: str, low: str, high: str) -> SqlFragment:
        keys = self._keys(conjunction, low, high)
        if type == conjunction.type:
            return keys
        if is_above(type, conjunction.type):
            owner = ancestor_key("k.key", conjunction.type, depth(type), self._db.find_function)
            return keys.within(f"SELECT DISTINCT {owner} AS key FROM ({{}}) AS k")
        below = keys.within(
            "SELECT e.tree_key AS key FROM ({}) AS k CROSS JOIN entity AS e"
            f" WHERE e.type = '{type}' AND e.tree_key > k.key || '!' AND e.tree_key < k.key || '\"'"
        )
        if self._moment is None:
            return below
        owner = ancestor_key("i.key", type, depth(conjunction.type), self._db.find_function)
        then = and_(
            self._list(self._moment.keys_of_type(type)).within("SELECT i.key FROM {} AS i WHERE 1 = 1"),
            keys.within(f"{owner} IN ({{}})"),
        )
        return join_fragments(" UNION ALL ", (and_(below, self.unchanged_condition("e.tree_key")), then))

    def _keys(self, conjunction: Conjunction, low: str, high: str) -> SqlFragment:
        """The entities of a conjunction's own type that it selects."""
        own = sorted(conjunction.for_type(conjunction.type), key=lambda each: self._of(each).cost)
        driver, *others = own
        drives = not driver.operator.is_negative
        source = self._driver(driver, low, high) if drives else self.all_keys(conjunction.type, low, high)
        tests = [self._probe(each, "d.key") for each in (others if drives else own)]
        for each in conjunction.expressions:
            if each.type != conjunction.type:
                key = ancestor_key("d.key", conjunction.type, depth(each.type), self._db.find_function)
                tests.append(self._probe(each, key))
        return source if not tests else and_(source.within("SELECT d.key FROM ({}) AS d WHERE 1 = 1"), *tests)

    def all_keys(self, type: str, low: str, high: str) -> SqlFragment:
        """A query for the keys of all entities of a type between two keys."""
        start = SqlFragment(f"SELECT e.tree_key AS key FROM entity AS e WHERE e.type = '{type}'")
        now = and_(start, between("e.tree_key", low, high))
        if self._moment is None:
            return now
        alive = [key for key in self._moment.keys_of_type(type) if low < key < high]
        then = self._list(alive).within("SELECT i.key FROM {} AS i")
        return join_fragments(" UNION ALL ", (and_(now, self.unchanged_condition("e.tree_key")), then))

    def _driver(self, expression: FilterExpression, low: str, high: str) -> SqlFragment:
        """The keys of the entities that meet an expression's positive form."""
        if expression.derived:
            test = self._derived(expression, "d.key")
            return and_(
                self.all_keys(expression.type, low, high).within("SELECT d.key FROM ({}) AS d WHERE 1 = 1"), test
            )
        found = self._of(expression)
        distinct = "DISTINCT " if expression.has_wildcards or expression.operator is Operator.PRESENT else ""
        start = SqlFragment(
            f"SELECT {distinct}a.tree_key AS key FROM attribute AS a WHERE a.type = '{expression.type}'"
        )
        end = and_(between("a.tree_key", low, high), self.unchanged_condition("a.tree_key"))
        parts = [and_(start, path, value, end) for path in found.paths for value in found.values]
        if also := [key for key in found.also if low < key < high]:
            parts.append(self._list(also).within("SELECT i.key FROM {} AS i"))
        if len(parts) == 1:
            return parts[0]
        return join_fragments(
            " UNION " if distinct else " UNION ALL ", parts or [SqlFragment("SELECT '' AS key WHERE 1 = 0")]
        )

    def _probe(self, expression: FilterExpression, key: str) -> SqlFragment:
        """Whether the entity with a key meets an expression."""
        negation = "NOT " if expression.operator.is_negative else ""
        if expression.derived:
            return self._derived(expression, key).within(f"{negation}({{}})")
        found = self._of(expression)
        tests: list[SqlFragment] = []
        if found.paths and found.values:
            leaf = and_(SqlFragment(f"a.tree_key = {key}"), or_(found.paths), or_(found.values))
            there = leaf.within("EXISTS (SELECT 1 FROM attribute AS a WHERE {})")
            tests.append(and_(there, self.unchanged_condition(key)))
        if found.also:
            tests.append(self._named(key, found.also))
        return or_(tests or [SqlFragment("1 = 0")]).within(f"{negation}{{}}")

    def _derived(self, expression: FilterExpression, key: str) -> SqlFragment:
        derived, sought = expression.derived, expression.sought
        assert derived is not None, "only what is made from xids comes here"
        operator = expression.operator.positive
        if operator is Operator.PRESENT:
            return ALWAYS
        start = (self._base if derived.absolute else "").casefold()
        text = f"(CAST(? AS TEXT) || replace({key}, '!', '/') || CAST(? AS TEXT))"
        made = (start, derived.suffix)
        if sought.has_wildcards:
            return SqlFragment(f"{text} LIKE ? ESCAPE '\\'", (*made, _like(sought.pieces)))
        if sought.text is None:
            return SqlFragment("1 = 0")
        return SqlFragment(f"{text} {_COMPARED[operator]} ?", (*made, sought.text))

    def _of(self, expression: FilterExpression) -> LeafConditions:
        """The leaf conditions of an expression; entities in doubt are decided at the first call."""
        found = self._leaves.get(expression)
        if found is None:
            found = self._leaves[expression] = self._compiled(expression)
        return found

    def _compiled(self, expression: FilterExpression) -> LeafConditions:
        if expression.derived:
            return LeafConditions((), (), (), 5)
        paths = self._paths(expression)
        sure, doubt, cost = _conditions(expression)
        decided = self._decided(expression, paths, doubt) if doubt and paths else {}
        also = [key for key, met in decided.items() if met]
        if decided and expression.sought.number is not None:
            # A rounded number has the same double as other numbers, so the entities already decided are excluded.
            apart = self._named("a.tree_key", decided).within("NOT ({})")
            sure = [and_(condition, apart) for condition in sure]
        if self._moment:
            also = [key for key in also if key not in self._moment.images] + self._then(expression)
        also += self._met(expression, self.omitted.rows(expression.type))
        return LeafConditions(paths, tuple(sure), tuple(also), 9 if expression.operator.is_negative else cost)

    def _paths(self, expression: FilterExpression) -> tuple[SqlFragment, ...]:
        """The alternative conditions on paths."""
        if expression.has_wildcards:
            found = self._wild_paths(expression)
            return (self._named("a.path", found),) if found else ()
        path = path_key(path_text(expression.path))
        exact = SqlFragment("a.path = ?", (path,))
        if expression.operator.positive is not Operator.PRESENT or expression.scalar:
            return (exact,)
        return exact, SqlFragment("a.path > ? AND a.path < ?", (f"{path}.", f"{path}/")), _items(path)

    def _wild_paths(self, expression: FilterExpression) -> list[str]:
        """The existing paths that match a path with wildcards."""
        fixed = path_text(tuple(takewhile(lambda each: not isinstance(each, PathWildcard), expression.path)))
        inner = r"(?:[.\[].*)?" if expression.operator.positive is Operator.PRESENT else ""
        wanted = re.compile("".join(map(_pattern, enumerate(expression.path))) + inner + r"\Z", re.DOTALL)
        low, high, type = fixed, fixed + "\U0010ffff", expression.type
        found = [
            row[0]
            for null in ("NULL", "NOT NULL")
            for row in self._db.all(_PATHS.format(null), (type, low, high, type, high))
        ]
        return [path for path in dict.fromkeys(found) if wanted.match(path)]

    def _decided(
        self, expression: FilterExpression, paths: Sequence[SqlFragment], doubt: SqlFragment
    ) -> dict[str, bool]:
        """Whether each entity in doubt meets the positive form of an expression, by key."""
        start = SqlFragment(
            f"SELECT DISTINCT {', '.join(f'e.{name}' for name in EntityRow._fields)} FROM attribute AS a"
            f" CROSS JOIN entity AS e WHERE e.tree_key = a.tree_key AND a.type = '{expression.type}'"
        )
        query = and_(start, or_(paths), doubt, between("a.tree_key", *self._range), *self._hinted(expression.sought))
        rows = map(stored_row, self._db.stream(*query))
        negative = expression.operator.is_negative
        return {row.tree_key: matches(expression, row, self._base) is not negative for row in rows}

    def _hinted(self, sought: FilterValue) -> tuple[SqlFragment, ...]:
        """A condition that skips most entities in doubt about a pattern: their JSON must contain a part of it."""
        parts = [part for piece in sought.pieces for part in _PLAIN.findall(piece)] if sought.has_wildcards else []
        if not parts:
            return ()
        there = SqlFragment("lower(e.attributes) LIKE ?", (f"%{_escaped(max(parts, key=len))}%",)).within(
            "{} ESCAPE '\\'"
        )
        # Characters outside ASCII may fold to ASCII.
        return (or_([there, SqlFragment(self._db.non_ascii_condition.format("e.attributes"))]),)

    def _then(self, expression: FilterExpression) -> list[str]:
        """The keys of the changed entities that met the positive form of an expression at the moment."""
        assert self._moment is not None, "there is no then without a moment"
        images = self._moment.images.values()
        return self._met(expression, (row for row in images if row and row.type == expression.type))

    def _met(self, expression: FilterExpression, rows: Iterable[EntityRow]) -> list[str]:
        """The keys of the rows that meet the positive form of an expression."""
        negative = expression.operator.is_negative
        return [row.tree_key for row in rows if matches(expression, row, self._base) is not negative]

    def unchanged_condition(self, column: str) -> SqlFragment:
        """A condition on a column of keys: their entities have not changed since the moment."""
        if self._moment is None:
            return ALWAYS
        return self._named(column, self._moment.images).within("NOT ({})")

    def _named(self, column: str, values: Collection[str]) -> SqlFragment:
        return SqlFragment(self._db.in_list(column), (self._db.list_parameter(values),))

    def _list(self, values: Collection[str]) -> SqlFragment:
        return SqlFragment(self._db.list_table, (self._db.list_parameter(values),))


def _pattern(numbered: tuple[int, Step]) -> str:
    at, each = numbered
    if isinstance(each, PathWildcard):
        return _WILD[each] if at else r"[^.\[]+" if each is PathWildcard.MEMBER else "(?!)"
    return re.escape(path_text([each]) if not at else f"[{each}]" if isinstance(each, int) else path_step(each))


def _items(path: str) -> SqlFragment:
    return SqlFragment("a.path > ? AND a.path < ?", (f"{path}[", f"{path}\\"))


Conditions = tuple[list[SqlFragment], SqlFragment | None, int]


def _conditions(expression: FilterExpression) -> Conditions:
    """Conditions on leaves that certainly meet it, a condition on those in doubt, and the rank as a driver."""
    operator, sought = expression.operator.positive, expression.sought
    if operator is Operator.PRESENT:
        return [SqlFragment("a.text IS NOT NULL"), SqlFragment("a.text IS NULL")], None, 3
    if sought.has_wildcards:
        return _like_text(sought.pieces)
    sure: list[SqlFragment] = []
    doubts: list[SqlFragment] = []
    if sought.text is not None:
        _add_text(sought.text, _COMPARED[operator], sure, doubts)
    if sought.boolean is not None:
        sure.append(_of_booleans(sought.boolean, _COMPARED[operator]))
    if sought.number is not None:
        _add_number(sought.number, operator, sure, doubts)
    return sure, or_(doubts) if doubts else None, 0 if operator is Operator.EQUAL else 2


def _add_text(text: str, compared: str, sure: list[SqlFragment], doubts: list[SqlFragment]) -> None:
    key = text[:TEXT_LIMIT]
    if len(key) < TEXT_LIMIT:
        sure.append(_of_texts(SqlFragment(f"a.text {compared} ?", (key,)), key if compared == "=" else None))
        return
    doubts.append(SqlFragment("a.text = ?", (key,)))
    if compared != "=":
        sure.append(_of_texts(SqlFragment(f"a.text {compared[0]} ?", (key,)), None))


def _of_booleans(boolean: bool, compared: str) -> SqlFragment:
    """The condition for booleans, which have texts and numbers.

    A single text keeps the index in the order of its keys.
    """
    texts = f"a.text = '{str(boolean).lower()}'" if compared == "=" else "a.text IN ('false', 'true')"
    return SqlFragment(f"{texts} AND a.number {compared} ?", (float(boolean),))


def _of_texts(condition: SqlFragment, only: str | None) -> SqlFragment:
    """The condition for strings; it excludes booleans, which have texts too. only: the one text that can match."""
    if only is not None and only not in ("true", "false"):
        return condition
    return and_(condition, SqlFragment("(a.text NOT IN ('false', 'true') OR a.number IS NULL)"))


def _add_number(number: Decimal, operator: Operator, sure: list[SqlFragment], doubts: list[SqlFragment]) -> None:
    """Adds conditions for a number: other doubles sort correctly; the same double is the number or a rounded one."""
    double = float(number)
    signs = {sign for sign in (-1, 1) if sign in operator.value}
    if compare_numbers(double, number) in operator.value:
        signs.add(0)
    if signs:
        found = and_(SqlFragment("a.text IS NULL"), SqlFragment(f"a.number {_SIGNS[frozenset(signs)]} ?", (double,)))
        # A single number keeps the index in the order of its keys.
        sure.append(and_(found, SqlFragment(f"a.remainder = '{NO_REMAINDER}'")) if signs == {0} else found)
    doubts.append(SqlFragment(f"a.remainder <> '{NO_REMAINDER}' AND a.number = ?", (double,)))


def _like_text(pieces: tuple[str, ...]) -> Conditions:
    """The conditions for a pattern: its prefix is a range; the key decides the rest if it holds the whole text."""
    prefix = pieces[0]
    key = prefix[:TEXT_LIMIT]
    start = SqlFragment("a.text >= ? AND a.text < ?", (key, _after(key))) if key else SqlFragment("a.text IS NOT NULL")
    texts = _of_texts(start, None)
    if not any(pieces[1:]) and len(prefix) <= TEXT_LIMIT:
        return [texts], None, 1
    short = SqlFragment(f"length(a.text) < {TEXT_LIMIT}")
    like = SqlFragment("a.text LIKE ? ESCAPE '\\'", (_like(pieces),))
    return [and_(texts, like, short)], and_(start, SqlFragment(f"length(a.text) = {TEXT_LIMIT}")), 1 if key else 4


@lru_cache(maxsize=256)
def _after(prefix: str) -> str:
    """The first text after all texts with a prefix."""
    for at in range(len(prefix) - 1, -1, -1):
        code = ord(prefix[at]) + 1
        if code <= 0x10FFFF:
            return prefix[:at] + chr(0xE000 if code == 0xD800 else code)
    return "\U0010ffff" * (TEXT_LIMIT + 1)


def _like(pieces: Sequence[str]) -> str:
    return "%".join(map(_escaped, pieces))


def _escaped(text: str) -> str:
    return re.sub(r"([%_\\])", r"\\\1", text)
