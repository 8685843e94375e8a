"""The leaves of an entity in the attribute index: one for each scalar, by its path.

A path is dot notation in one canonical form: `name`, `labels.stage`, `meta.epoch`, `tags[0]`, and `labels['a.b']` for
keys that are empty, consist of digits only, or contain a special character of dot notation (a quote in a key is
doubled). A key with NUL is JSON text in brackets. A path longer than `PATH_LIMIT` characters is cut and ends in `#` and
the SHA-256 of the whole path.

`{}`, `[]` and what has only nulls inside is one leaf with an empty value, and a null is none. An attribute is therefore
present if a leaf has its path or a path below it. An entity with too many leaves has only one, `OMITTED_PATH`, whose
path is empty: its JSON decides all filters on its attributes.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

from annals.domain.values import xid as xids
from annals.domain.values.dot_path import Step
from annals.domain.values.json_text import dumps
from annals.projections.entities.index_values import (
    EMPTY_VALUE,
    FALSE_VALUE,
    TRUE_VALUE,
    number_value,
    text_value,
)

#: Types without leaves, because no filter reaches them.
UNINDEXED_TYPES: Final = frozenset((xids.MODEL, xids.CAPABILITIES))
PATH_LIMIT: Final = 256
#: The number of characters that a cut path keeps; `#` and 64 hexadecimal digits follow.
CUT_LENGTH: Final = PATH_LIMIT - 65
#: The maximum number of an entity's leaves in the index, unless configured.
MAX_LEAVES: Final = 1000

#: The path of the only leaf of an entity that has more leaves than the index accepts.
OMITTED_PATH: Final = ""
OMITTED_LEAVES: Final = {OMITTED_PATH: EMPTY_VALUE}

_CUT_PATH: Final = re.compile(rf".{{{CUT_LENGTH}}}#[0-9a-f]{{64}}", re.DOTALL)
_PLAIN_KEY: Final = re.compile(r"(?!\d+\Z)[^.\[\]'\"*]+\Z")


def leaves(attributes: Mapping[str, Any], max_leaves: int = sys.maxsize) -> dict[str, bytes]:
    """The values of an entity's leaves by path; only `OMITTED_PATH` if there are more than `max_leaves`.

    Cost: O(max_leaves).
    """
    leaves_by_path: dict[str, bytes] = {}
    if len(attributes) <= max_leaves:
        for name, value in attributes.items():
            _add_leaves(leaves_by_path, name, value, max_leaves)
    if len(attributes) > max_leaves or len(leaves_by_path) > max_leaves:
        return dict(OMITTED_LEAVES)
    return (
        leaves_by_path
        if max(map(len, leaves_by_path), default=0) <= PATH_LIMIT
        else {path_key(path): leaves_by_path[path] for path in leaves_by_path}
    )


def path_key(path: str) -> str:
    """A path in the form that the table holds."""
    if len(path) <= PATH_LIMIT:
        return path
    return f"{path[:CUT_LENGTH]}#{sha256(path.encode()).hexdigest()}"


def is_cut_path(key: str) -> bool:
    """Whether the form of a path in the table may stand for a longer one; few whole paths look like a cut one."""
    return _CUT_PATH.fullmatch(key) is not None


def path_text(path: Sequence[Step]) -> str:
    """A path of steps without wildcards, in canonical form."""
    first_step, *remaining_steps = path or ("",)
    return f"{first_step}" + "".join(
        f"[{step}]" if isinstance(step, int) else path_step(str(step)) for step in remaining_steps
    )


@lru_cache(maxsize=4096)
def path_step(key: str) -> str:
    """The step of a path to a member: `.stage`, `['a.b']` or `["a\\u0000b"]`."""
    if "\0" in key:  # which no text in a database has
        return f"[{dumps(key).decode()}]"
    quoted = key.replace("'", "''")
    return f".{key}" if _PLAIN_KEY.match(key) else f"['{quoted}']"


def _add_leaves(leaves_by_path: dict[str, bytes], path: str, value: Any, max_leaves: int) -> None:
    """Adds the leaves of a value; stops after more than `max_leaves`."""
    # An import calls this twenty times for each entity, so the frequent types are tested first.
    value_type = type(value)
    if value_type is str:
        leaves_by_path[path] = text_value(value)
    elif value_type is bool:
        leaves_by_path[path] = TRUE_VALUE if value else FALSE_VALUE
    elif value_type is dict:
        previous_count = len(leaves_by_path)
        for key, member in value.items():
            _add_leaves(leaves_by_path, path + path_step(key), member, max_leaves)
            if len(leaves_by_path) > max_leaves:
                return
        if len(leaves_by_path) == previous_count:
            leaves_by_path[path] = EMPTY_VALUE
    elif value_type is list:
        previous_count = len(leaves_by_path)
        for index, item in enumerate(value):
            _add_leaves(leaves_by_path, f"{path}[{index}]", item, max_leaves)
            if len(leaves_by_path) > max_leaves:
                return
        if len(leaves_by_path) == previous_count:
            leaves_by_path[path] = EMPTY_VALUE
    elif value is not None:
        leaves_by_path[path] = number_value(value)
