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


def mark_filled_in(given: Mapping[str, Any], completed: Mapping[str, Any]) -> DefaultMarks:
    """The marks of values that the completed object has and the given one lacks.

    O(members), without identical objects.
    """
    marks: DefaultMarks = {}
    for name, value in completed.items():
        before = given.get(name)
        if before is value:
            continue
        if before is None:
            marks[name] = True
        elif type(value) is dict and isinstance(before, Mapping) and (inside := mark_filled_in(before, value)):
            marks[name] = inside
    return marks


def retain_marks(marks: Mapping[str, Any], image: Mapping[str, Any]) -> DefaultMarks:
    """The marks whose values are still in an image."""
    left: DefaultMarks = {}
    for name, mark in marks.items():
        if name not in image:
            continue
        if mark is True:
            left[name] = True
        elif isinstance(image[name], Mapping) and (inside := retain_marks(mark, image[name])):
            left[name] = inside
    return left


def unchanged_marks(marks: Mapping[str, Any], before: Mapping[str, Any], after: Mapping[str, Any]) -> DefaultMarks:
    """The marks whose values are equal in both images."""
    left: DefaultMarks = {}
    for name, mark in marks.items():
        was, value = before.get(name), after.get(name)
        if mark is True:
            if value is not None and value == was:
                left[name] = True
        elif isinstance(was, Mapping) and isinstance(value, Mapping) and (inside := unchanged_marks(mark, was, value)):
            left[name] = inside
    return left


def join_marks(one: Mapping[str, Any], other: Mapping[str, Any]) -> DefaultMarks:
    """The union of two sets of marks."""
    done = dict(one)
    for name, mark in other.items():
        known = done.get(name)
        done[name] = join_marks(known, mark) if isinstance(known, dict) and isinstance(mark, dict) else known or mark
    return done


def mark_equal_defaults(
    marks: DefaultMarks, image: Mapping[str, Any], defaults: Mapping[tuple[str, ...], Any]
) -> DefaultMarks:
    """The marks of an image with additional defaults by path, which have precedence: equal values are marked."""
    done = marks
    for path, default in defaults.items():
        done = _set(done, path, image, default)
    return done


def _set(marks: DefaultMarks, path: tuple[str, ...], image: Mapping[str, Any], default: Any) -> DefaultMarks:
    name, *rest = path
    value = image.get(name)
    if rest:
        inside = _set(marks.get(name, {}), tuple(rest), value, default) if isinstance(value, Mapping) else {}
        return {**marks, name: inside} if inside else marks
    left = {each: mark for each, mark in marks.items() if each != name}
    return {**left, name: True} if value == default and value is not None else left


def explicit_values(image: Mapping[str, Any], marks: Mapping[str, Any]) -> dict[str, Any]:
    """An image without its marked values.

    Objects that contained only marked values stay, empty, because they are explicit.
    """
    done: dict[str, Any] = {}
    for name, value in image.items():
        mark = marks.get(name)
        if mark is None:
            done[name] = value
        elif mark is not True:
            done[name] = explicit_values(value, mark) if isinstance(value, Mapping) else value
    return done
