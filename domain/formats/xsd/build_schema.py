"""Converts components of the xmlschema library to `model.XsdDocument`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from xmlschema.validators import (
    XsdAnyAttribute,
    XsdAnyElement,
    XsdComplexType,
    XsdElement,
    XsdGroup,
    XsdList,
    XsdSimpleType,
    XsdUnion,
)

from domain.formats.contract import InvalidDocument
from domain.formats.xsd.content_model import (
    EMPTY_CONTENT,
    ContentModel,
    ElementName,
    NamespaceWildcard,
    all_of,
    choice_of,
    repeat,
    sequence_of,
)
from domain.formats.xsd.model import (
    AttributeDeclaration,
    ComplexType,
    ElementDeclaration,
    FacetBound,
    SimpleType,
    TypeDefinition,
    XsdDocument,
)
from domain.formats.xsd.xml_tree import PREFIX_PATTERN, XS

_STRICTNESS: Final = {"skip": 0, "lax": 1, "strict": 2}
_BUILT_IN: Final = f"{{{XS}}}"
#: Maximum length of a derivation chain: each type is stored with all its ancestors, at quadratic cost.
_LONGEST: Final = 200
_ANY_TYPE: Final = f"{{{XS}}}anyType"


def build_schema(schema: Any, text: str, starts: Mapping[int, int]) -> XsdDocument:
    """The model of a schema that xmlschema accepted; O(size). starts: byte offset by `id` of an element of its tree."""
    return _Builder(schema, starts).schema(text)


class _Builder:
    def __init__(self, schema: Any, starts: Mapping[int, int]) -> None:
        self._schema = schema
        self._starts = starts
        self._types: list[TypeDefinition | None] = []
        self._places: dict[int, int] = {}
        self._waiting: list[tuple[int, Any]] = []
        self._derived: dict[str, dict[str, frozenset[str]]] = {}
        for name, found in schema.maps.types.items():
            base, steps, how = found.base_type, 0, {found.derivation} if found.is_complex() else set()
            while found.is_complex() and base is not None and base.name not in (None, _ANY_TYPE):
                self._derived.setdefault(base.name, {})[name] = frozenset(how)
                how |= {base.derivation} if base.is_complex() else set()
                base, steps = base.base_type, steps + 1
                if steps > _LONGEST:
                    raise _derivation_too_long(name)

    def schema(self, text: str) -> XsdDocument:
        own = self._schema
        elements = {found.name: self._element(found) for found in own.elements.values() if found.schema is own}
        named = {found.name: self._place(found) for found in own.types.values() if found.schema is own}
        while self._waiting:
            place, found = self._waiting.pop()
            self._types[place] = self._simple(found) if isinstance(found, XsdSimpleType) else self._complex(found)
        types = tuple(found for found in self._types if found is not None)
        return XsdDocument(text, self._starts.get(id(own.source.root)), own.target_namespace, elements, named, types)

    def _start(self, component: Any) -> int | None:
        return self._starts.get(id(component.elem))

    def _place(self, found: Any) -> int:
        """The index of a type in `types`. Types are converted later, one by one, so circular references do no harm."""
        known = self._places.get(id(found))
        if known is None:
            known = self._places[id(found)] = len(self._types)
            self._types.append(None)
            self._waiting.append((known, found))
        return known

    def _element(self, found: XsdElement) -> ElementDeclaration:
        return ElementDeclaration(
            name=found.name,
            type=self._place(found.type),
            start=self._start(found),
            nillable=found.nillable,
            fixed=found.fixed,
            identities=tuple(sorted(map(_identity, found.identities))),
            alternatives=tuple(
                (_path(alternative.path or "", alternative), self._place(alternative.type))
                for alternative in found.alternatives
                if alternative.type is not None
            ),
            abstract=found.abstract,
            default=found.fixed if found.default is None else found.default,
            block=_blocked(found),
        )

    # -- complex types --------------------------------------------------------------------------------------------

    def _complex(self, found: XsdComplexType) -> ComplexType:
        content = found.content
        text = self._place(content) if isinstance(content, XsdSimpleType) else None
        elements: dict[str, dict[ElementDeclaration, None]] = {}
        term = self._term(content, elements) if isinstance(content, XsdGroup) else EMPTY_CONTENT
        opened = found.open_content
        if opened is not None and opened.any_element is not None and opened.mode != "none":
            rest = repeat(_wild(opened.any_element), 0, None)
            term = all_of([term, rest]) if opened.mode == "interleave" else sequence_of([term, rest])
        return ComplexType(
            name=found.name,
            start=self._start(found),
            content=term,
            elements={name: tuple(declared) for name, declared in elements.items()},
            attributes={
                name: AttributeDeclaration(
                    name, self._place(part.type), self._start(part), part.use == "required", part.fixed
                )
                for name, part in found.attributes.items()
                if name is not None and part.use != "prohibited"
            },
            other_attributes=next(
                (_wild(part) for part in found.attributes.values() if isinstance(part, XsdAnyAttribute)), None
            ),
            text=text,
            mixed=found.mixed,
            abstract=found.abstract,
            assertions=frozenset(_path(test.path, test) for test in found.assertions),
            derived=self._derived.get(found.name or "", {}),
            block=_blocked(found),
        )

    def _term(self, group: XsdGroup, elements: dict[str, dict[ElementDeclaration, None]]) -> ContentModel:
        """A model group as a content model. Adds its element declarations to `elements`."""
        items = [self._particle(particle, elements) for particle in group]
        made = (
            choice_of(items)
            if group.model == "choice" and items
            else all_of(items)
            if group.model == "all"
            else sequence_of(items)
        )
        return repeat(made, group.min_occurs, group.max_occurs)

    def _particle(self, found: Any, elements: dict[str, dict[ElementDeclaration, None]]) -> ContentModel:
        if isinstance(found, XsdGroup):
            return self._term(found, elements)
        if isinstance(found, XsdAnyElement):
            return repeat(_wild(found), found.min_occurs, found.max_occurs)
        head = found.ref if found.ref is not None else found
        standing = [head]
        if "substitution" not in (blocked := _blocked(head)):
            standing += (
                each for each in found.iter_substitutes() if not blocked & _derivation_steps(each.type, head.type)
            )
        names: list[ContentModel] = []
        for element in standing:
            if not element.abstract:
                elements.setdefault(element.name, {})[self._element(element)] = None
                names.append(ElementName(element.name))
        return repeat(choice_of(names), found.min_occurs, found.max_occurs)

    # -- simple types ---------------------------------------------------------------------------------------------

    def _simple(self, found: XsdSimpleType) -> SimpleType:
        steps: list[Any] = [found]
        while (base := _text_of(steps[-1].base_type)) is not None:
            steps.append(base)
            if len(steps) > _LONGEST:
                raise _derivation_too_long(found.name)
        names = [
            step.name
            for step in steps
            if step.name and (step.name.startswith(_BUILT_IN) or step.schema is not self._schema)
        ]
        if "{http://www.w3.org/2001/XMLSchema}anySimpleType" not in names:
            names.append(f"{_BUILT_IN}anySimpleType")
        variety = next((step for step in steps if isinstance(step, XsdList | XsdUnion)), None)
        kind: str = "atomic"
        parts: tuple[int, ...] = ()
        if isinstance(variety, XsdList):
            kind, parts = "list", (self._place(variety.item_type),)
        elif isinstance(variety, XsdUnion):
            kind, parts = "union", tuple(map(self._place, variety.member_types))
        return SimpleType(tuple(names), kind, self._start(found), parts, **_facets(steps))


def _text_of(base: Any) -> XsdSimpleType | None:
    """The simple type from which another derives, also where it is the content of a complex type."""
    found = getattr(base, "content", None) if isinstance(base, XsdComplexType) else base
    return found if isinstance(found, XsdSimpleType) else None


def _blocked(found: Any) -> frozenset[str]:
    words = (found.block or "").split()
    return frozenset(("extension", "restriction", "substitution") if "#all" in words else words)


def _derivation_steps(found: Any, base: Any) -> frozenset[str]:
    """The kinds of derivation between a type and its base type."""
    how: set[str] = set()
    while found is not None and found is not base:
        how.add(found.derivation or "restriction" if found.is_complex() else "restriction")
        found = found.base_type
    return frozenset(how)


def _derivation_too_long(name: str | None) -> InvalidDocument:
    return InvalidDocument(f"the type {name or 'without a name'} derives from more than {_LONGEST} others in a row")


def _facets(steps: Iterable[Any]) -> dict[str, Any]:
    """The facets of a simple type, combined from all steps of its derivation."""
    found: dict[str, Any] = {"patterns": (), "assertions": frozenset()}
    for step in steps:  # nearest step first, so an existing value is the narrower one
        built_in = bool(step.name) and step.name.startswith(_BUILT_IN)
        for tag, facet in step.facets.items():
            if tag is None or not hasattr(facet, "elem"):
                continue
            match tag.removeprefix(_BUILT_IN):
                case "minInclusive" | "minExclusive" as name:
                    found.setdefault("low", FacetBound(facet.value, name == "minExclusive"))
                case "maxInclusive" | "maxExclusive" as name:
                    found.setdefault("high", FacetBound(facet.value, name == "maxExclusive"))
                case "length":
                    found.setdefault("shortest", facet.value)
                    found.setdefault("longest", facet.value)
                case "minLength":
                    found.setdefault("shortest", facet.value)
                case "maxLength":
                    found.setdefault("longest", facet.value)
                case "totalDigits":
                    found.setdefault("digits", facet.value)
                case "fractionDigits":
                    found.setdefault("fraction", facet.value)
                case "enumeration":
                    found.setdefault("values", tuple(facet.enumeration))
                case "pattern" if not built_in:  # the name of a built-in type already determines its patterns
                    found["patterns"] += (frozenset(part.get("value", "") for part in facet),)
                case "assertion":
                    found["assertions"] |= {
                        _path(test.path, test) for test in (facet if isinstance(facet, list) else [facet])
                    }
                case "whiteSpace":
                    found.setdefault("space", facet.value)
                case "explicitTimezone":
                    found.setdefault("zone", facet.value)
    return found


def _wild(found: Any) -> NamespaceWildcard:
    not_names = frozenset(found.not_qname)
    target = found.target_namespace
    if found.not_namespace:
        namespaces, excluding = frozenset(found.not_namespace), True
    elif "##any" in found.namespace:
        namespaces, excluding = frozenset[str](), True
    elif "##other" in found.namespace:
        namespaces, excluding = frozenset(("", target)), True
    else:
        namespaces, excluding = frozenset(found.namespace), False
    return NamespaceWildcard(namespaces, excluding, _STRICTNESS[found.process_contents], not_names)


def _identity(found: Any) -> str:
    """A uniqueness rule as a text that is equal for equal rules, independent of their names."""
    refers = getattr(found, "refer", None)
    target = "" if refers is None else " of " + _identity(refers) if hasattr(refers, "selector") else f" of {refers}"
    fields = ", ".join(_path(field.path, found) for field in found.fields)
    kind = found.elem.tag.rpartition("}")[2]
    return f"{kind} {_path(found.selector.path, found) if found.selector else ''} ({fields}){target}"


def _path(path: str, found: Any) -> str:
    """An XPath expression with namespaces instead of prefixes."""
    known = found.schema.namespaces
    return PREFIX_PATTERN.sub(lambda part: part[1] or f"{{{known.get(part[2], part[2])}}}", path)
