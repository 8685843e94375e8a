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
_WILDCARD: Final = None


def check_model(group: Any) -> None:
    """Checks a content model against both rules. Raises: XMLSchemaModelError. Cost: linear except for conflicting
    parts.

    Replaces the library's function of this name.
    """
    leaves_by_name: dict[str | None, tuple[Any, list[Any]]] = {}
    element_names: dict[str, dict[str, None]] = {}
    open_wildcard = getattr(getattr(group.parent, "open_content", None), "any_element", None)
    for leaf, path in _model_parts(group, [group]):
        if open_wildcard is not None and isinstance(leaf, XsdElement) and not open_wildcard.is_consistent(leaf):
            raise XMLSchemaModelError(group, f"{leaf!r} does not agree with the open content")
        if isinstance(leaf, XsdElement):
            names = _element_names(leaf)
            conflicting_names = dict.fromkeys(other for name in names for other in element_names.get(name, ()))
            candidates = [leaves_by_name[name] for name in conflicting_names]
            candidates += [leaves_by_name[_WILDCARD]] if _WILDCARD in leaves_by_name else []
            for name in names:
                element_names.setdefault(name, {})[leaf.name] = None
        else:
            candidates = list(leaves_by_name.values())
        for other, before in candidates:
            _check_distinguishable(group, (other, before), (leaf, path))
        leaves_by_name[leaf.name if isinstance(leaf, XsdElement) else _WILDCARD] = leaf, path


def _model_parts(group: Any, path: list[Any]) -> Iterator[tuple[Any, list[Any]]]:
    """Elements and wildcards, each with the groups that contain it."""
    if len(path) > limits.MAX_MODEL_DEPTH + 1:
        raise XMLSchemaModelDepthError(group)
    for item in group:
        if isinstance(item, XsdGroup):
            yield from _model_parts(item, [*path, item])
        else:
            yield item, path


def _element_names(element: XsdElement) -> dict[str, None]:
    """The names of an element, of the head that it can substitute, and of its substitutes."""
    names = [element.name, element.substitution_group, *(substitute.name for substitute in element.iter_substitutes())]
    return dict.fromkeys(name for name in names if name)


def _check_distinguishable(group: Any, first: tuple[Any, list[Any]], other: tuple[Any, list[Any]]) -> None:
    """Checks two parts of a model against both rules. Raises: XMLSchemaModelError."""
    (earlier, before), (later, path) = first, other
    if not later.is_consistent(earlier):
        raise XMLSchemaModelError(group, f"{later!r} and {earlier!r} have one name and different types")
    if earlier is later or not earlier.is_overlap(later):
        return
    if earlier.parent is later.parent and earlier.parent is not None:
        if earlier.parent.model in ("all", "choice"):
            if not _has_precedence(group, earlier, later):
                text = f"{earlier!r} and {later!r} overlap and are in the same {earlier.parent.model} group"
                raise XMLSchemaModelError(group, text)
        elif earlier.is_univocal():
            return
    if models.distinguishable_paths([*before, earlier], [*path, later]) or _has_precedence(group, earlier, later):
        return
    raise XMLSchemaModelError(group, f"nothing tells whether an element is {earlier!r} or {later!r}")


def _has_precedence(group: Any, earlier: Any, later: Any) -> bool:
    """Whether one of two parts is a wildcard that yields to the other, as XSD 1.1 allows."""
    for wildcard, element in ((earlier, later), (later, earlier)):
        if (
            isinstance(wildcard, XsdAnyElement)
            and hasattr(wildcard, "add_precedence")
            and isinstance(element, XsdElement)
        ):
            wildcard.add_precedence(element, group)
            return True
    return False


def install_model_check() -> None:
    """Replaces the library's check with this one."""
    vars(xsd_globals)["check_model"] = check_model
