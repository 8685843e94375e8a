"""Checks in near linear time that the parts of a content model are distinguishable.

xmlschema compares all pairs of parts, which takes minutes for some thousands of elements. Two elements conflict only if
they share a name or one can substitute the other. So only such pairs are compared, and wildcards with everything.
Spec: XML Schema part 1, "Unique Particle Attribution" and "Element Declarations Consistent".
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from xmlschema import XMLSchemaModelError, limits
from xmlschema.validators import XsdAnyElement, XsdElement, XsdGroup, models, xsd_globals
from xmlschema.validators.exceptions import XMLSchemaModelDepthError

#: The key of wildcards, which have no name. Like the library, the check keeps only the last part with a key.
_WILD: Final = None


def check_model(group: Any) -> None:
    """Checks a content model against both rules. Raises: XMLSchemaModelError. Cost: linear except for conflicting
    parts.

    Replaces the library's function of this name.
    """
    places: dict[str | None, tuple[Any, list[Any]]] = {}
    named: dict[str, dict[str, None]] = {}
    opened = getattr(getattr(group.parent, "open_content", None), "any_element", None)
    for found, path in _leaves(group, [group]):
        if opened is not None and isinstance(found, XsdElement) and not opened.is_consistent(found):
            raise XMLSchemaModelError(group, f"{found!r} does not agree with the open content")
        if isinstance(found, XsdElement):
            names = _names(found)
            others = dict.fromkeys(other for name in names for other in named.get(name, ()))
            candidates = [places[name] for name in others]
            candidates += [places[_WILD]] if _WILD in places else []
            for name in names:
                named.setdefault(name, {})[found.name] = None
        else:
            candidates = list(places.values())
        for other, before in candidates:
            _check_distinguishable(group, (other, before), (found, path))
        places[found.name if isinstance(found, XsdElement) else _WILD] = found, path


def _leaves(group: Any, path: list[Any]) -> Iterator[tuple[Any, list[Any]]]:
    """Elements and wildcards, each with the groups that contain it."""
    if len(path) > limits.MAX_MODEL_DEPTH + 1:
        raise XMLSchemaModelDepthError(group)
    for item in group:
        if isinstance(item, XsdGroup):
            yield from _leaves(item, [*path, item])
        else:
            yield item, path


def _names(found: XsdElement) -> dict[str, None]:
    """The names of an element, of the head that it can substitute, and of its substitutes."""
    names = [found.name, found.substitution_group, *(each.name for each in found.iter_substitutes())]
    return dict.fromkeys(name for name in names if name)


def _check_distinguishable(group: Any, one: tuple[Any, list[Any]], other: tuple[Any, list[Any]]) -> None:
    """Checks two parts of a model against both rules. Raises: XMLSchemaModelError."""
    (earlier, before), (later, path) = one, other
    if not later.is_consistent(earlier):
        raise XMLSchemaModelError(group, f"{later!r} and {earlier!r} have one name and different types")
    if earlier is later or not earlier.is_overlap(later):
        return
    if earlier.parent is later.parent and earlier.parent is not None:
        if earlier.parent.model in ("all", "choice"):
            if not _precedence(group, earlier, later):
                text = f"{earlier!r} and {later!r} overlap and are in the same {earlier.parent.model} group"
                raise XMLSchemaModelError(group, text)
        elif earlier.is_univocal():
            return
    if models.distinguishable_paths([*before, earlier], [*path, later]) or _precedence(group, earlier, later):
        return
    raise XMLSchemaModelError(group, f"nothing tells whether an element is {earlier!r} or {later!r}")


def _precedence(group: Any, earlier: Any, later: Any) -> bool:
    """Whether one of two parts is a wildcard that yields to the other, as XSD 1.1 allows."""
    for wild, element in ((earlier, later), (later, earlier)):
        if isinstance(wild, XsdAnyElement) and hasattr(wild, "add_precedence") and isinstance(element, XsdElement):
            wild.add_precedence(element, group)
            return True
    return False


def install_model_check() -> None:
    """Replaces the library's check with this one."""
    vars(xsd_globals)["check_model"] = check_model
