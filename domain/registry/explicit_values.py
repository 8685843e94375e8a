"""Which values of an entity are explicit, and which are filled-in defaults of the model.

Marks record the defaults: under a name there is True for a default, or the marks of an object's members. Values inside
arrays are not marked, because an array is always treated as a whole. Marks are stored with a Version (`private`),
because no response shows the difference, and a default must not hide the value of a base message (MS-16). For the same
reason a default that a client reads and sends back unchanged stays a default. If another registry's response shows a
value that equals a default of the model, it counts as a default too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

#: See the module.
DefaultMarks = dict[str, Any]

#: The private member of a Version that has its marks; absent if the Version has no defaults.
DEFAULT_MARKS: Final = "defaults"


def mark_filled_in(requested: Mapping[str, Any], completed: Mapping[str, Any]) -> DefaultMarks:
    """The marks of values that the completed object has and the requested one lacks.

    O(members), without identical objects.
    """
    marks: DefaultMarks = {}
    for name, value in completed.items():
        requested_value = requested.get(name)
        if requested_value is value:
            continue
        if requested_value is None:
            marks[name] = True
        elif (
            type(value) is dict
            and isinstance(requested_value, Mapping)
            and (nested_marks := mark_filled_in(requested_value, value))
        ):
            marks[name] = nested_marks
    return marks


def retain_marks(marks: Mapping[str, Any], image: Mapping[str, Any]) -> DefaultMarks:
    """The marks whose values are still in an image."""
    retained: DefaultMarks = {}
    for name, mark in marks.items():
        if name not in image:
            continue
        if mark is True:
            retained[name] = True
        elif isinstance(image[name], Mapping) and (nested_marks := retain_marks(mark, image[name])):
            retained[name] = nested_marks
    return retained


def unchanged_marks(marks: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> DefaultMarks:
    """The marks whose values are equal in both images."""
    unchanged: DefaultMarks = {}
    for name, mark in marks.items():
        previous, value = before.get(name), after.get(name)
        if mark is True:
            if value is not None and value == previous:
                unchanged[name] = True
        elif (
            isinstance(previous, Mapping)
            and isinstance(value, Mapping)
            and (nested_marks := unchanged_marks(mark, previous, value))
        ):
            unchanged[name] = nested_marks
    return unchanged


def join_marks(first: Mapping[str, Any], other: Mapping[str, Any]) -> DefaultMarks:
    """The union of two sets of marks."""
    joined = dict(first)
    for name, mark in other.items():
        first_mark = joined.get(name)
        joined[name] = (
            join_marks(first_mark, mark)
            if isinstance(first_mark, dict) and isinstance(mark, dict)
            else first_mark or mark
        )
    return joined


def mark_equal_defaults(
    marks: DefaultMarks, image: Mapping[str, Any], defaults: Mapping[tuple[str, ...], Any]
) -> DefaultMarks:
    """The marks of an image with additional defaults by path, which have precedence: equal values are marked."""
    all_marks = marks
    for path, default in defaults.items():
        all_marks = _set_mark(all_marks, path, image, default)
    return all_marks


def _set_mark(marks: DefaultMarks, path: tuple[str, ...], image: Mapping[str, Any], default: Any) -> DefaultMarks:
    name, *remaining = path
    value = image.get(name)
    if remaining:
        nested_marks = (
            _set_mark(marks.get(name, {}), tuple(remaining), value, default) if isinstance(value, Mapping) else {}
        )
        return {**marks, name: nested_marks} if nested_marks else marks
    other_marks = {mark_name: mark for mark_name, mark in marks.items() if mark_name != name}
    return {**other_marks, name: True} if value == default and value is not None else other_marks


def explicit_values(image: Mapping[str, Any], marks: Mapping[str, Any]) -> dict[str, Any]:
    """An image without its marked values.

    Objects that contained only marked values stay, empty, because they are explicit.
    """
    values: dict[str, Any] = {}
    for name, value in image.items():
        mark = marks.get(name)
        if mark is None:
            values[name] = value
        elif mark is not True:
            values[name] = explicit_values(value, mark) if isinstance(value, Mapping) else value
    return values
