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

from annals.domain.formats.contract import InvalidDocument
from annals.domain.formats.xsd.content_model import (
    EMPTY_CONTENT,
    ContentModel,
    ElementName,
    NamespaceWildcard,
    all_of,
    choice_of,
    repeat,
    sequence_of,
)
from annals.domain.formats.xsd.model import (
    AttributeDeclaration,
    ComplexType,
    ElementDeclaration,
    FacetBound,
    SimpleType,
    TypeDefinition,
    XsdDocument,
)
from annals.domain.formats.xsd.xml_tree import PREFIX_PATTERN, XS

_STRICTNESS: Final = {"skip": 0, "lax": 1, "strict": 2}
_BUILT_IN_PREFIX: Final = f"{{{XS}}}"
#: Maximum length of a derivation chain: each type is stored with all its ancestors, at quadratic cost.
_MAX_DERIVATION_STEPS: Final = 200
_ANY_TYPE: Final = f"{{{XS}}}anyType"


def build_schema(schema: Any, text: str, offsets: Mapping[int, int]) -> XsdDocument:
    """The model of a schema that xmlschema accepted; O(size).

    offsets: byte offset by `id` of an element of its tree.
    """
    return _SchemaBuilder(schema, offsets).build(text)


class _SchemaBuilder:
    def __init__(self, schema: Any, start_offsets: Mapping[int, int]) -> None:
        self._schema = schema
        self._start_offsets = start_offsets
        self._types: list[TypeDefinition | None] = []
        self._places: dict[int, int] = {}
        self._waiting: list[tuple[int, Any]] = []
        self._derivations: dict[str, dict[str, frozenset[str]]] = {}
        for name, type_definition in schema.maps.types.items():
            base_type, steps, derivations = (
                type_definition.base_type,
                0,
                {type_definition.derivation} if type_definition.is_complex() else set(),
            )
            while type_definition.is_complex() and base_type is not None and base_type.name not in (None, _ANY_TYPE):
                self._derivations.setdefault(base_type.name, {})[name] = frozenset(derivations)
                derivations |= {base_type.derivation} if base_type.is_complex() else set()
                base_type, steps = base_type.base_type, steps + 1
                if steps > _MAX_DERIVATION_STEPS:
                    raise _derivation_too_long(name)

    def build(self, text: str) -> XsdDocument:
        schema = self._schema
        elements = {
            component.name: self._convert_element(component)
            for component in schema.elements.values()
            if component.schema is schema
        }
        named_types = {
            component.name: self._type_index(component)
            for component in schema.types.values()
            if component.schema is schema
        }
        while self._waiting:
            index, component = self._waiting.pop()
            self._types[index] = (
                self._convert_simple(component)
                if isinstance(component, XsdSimpleType)
                else self._convert_complex(component)
            )
        types = tuple(component for component in self._types if component is not None)
        return XsdDocument(
            text, self._start_offsets.get(id(schema.source.root)), schema.target_namespace, elements, named_types, types
        )

    def _start_offset(self, component: Any) -> int | None:
        return self._start_offsets.get(id(component.elem))

    def _type_index(self, type_definition: Any) -> int:
        """The index of a type in `types`. Types are converted later, one by one, so circular references do no harm."""
        index = self._places.get(id(type_definition))
        if index is None:
            index = self._places[id(type_definition)] = len(self._types)
            self._types.append(None)
            self._waiting.append((index, type_definition))
        return index

    def _convert_element(self, declaration: XsdElement) -> ElementDeclaration:
        return ElementDeclaration(
            name=declaration.name,
            type=self._type_index(declaration.type),
            start=self._start_offset(declaration),
            nillable=declaration.nillable,
            fixed=declaration.fixed,
            identities=tuple(sorted(map(_identity_text, declaration.identities))),
            alternatives=tuple(
                (_xpath_text(alternative.path or "", alternative), self._type_index(alternative.type))
                for alternative in declaration.alternatives
                if alternative.type is not None
            ),
            abstract=declaration.abstract,
            default=declaration.fixed if declaration.default is None else declaration.default,
            block=_blocked_derivations(declaration),
        )

    # -- complex types --------------------------------------------------------------------------------------------

    def _convert_complex(self, definition: XsdComplexType) -> ComplexType:
        content = definition.content
        text = self._type_index(content) if isinstance(content, XsdSimpleType) else None
        elements: dict[str, dict[ElementDeclaration, None]] = {}
        content_model = self._convert_group(content, elements) if isinstance(content, XsdGroup) else EMPTY_CONTENT
        open_content = definition.open_content
        if open_content is not None and open_content.any_element is not None and open_content.mode != "none":
            open_wildcard = repeat(_convert_wildcard(open_content.any_element), 0, None)
            content_model = (
                all_of([content_model, open_wildcard])
                if open_content.mode == "interleave"
                else sequence_of([content_model, open_wildcard])
            )
        return ComplexType(
            name=definition.name,
            start=self._start_offset(definition),
            content=content_model,
            elements={name: tuple(declared) for name, declared in elements.items()},
            attributes={
                name: AttributeDeclaration(
                    name,
                    self._type_index(attribute.type),
                    self._start_offset(attribute),
                    attribute.use == "required",
                    attribute.fixed,
                )
                for name, attribute in definition.attributes.items()
                if name is not None and attribute.use != "prohibited"
            },
            other_attributes=next(
                (
                    _convert_wildcard(attribute)
                    for attribute in definition.attributes.values()
                    if isinstance(attribute, XsdAnyAttribute)
                ),
                None,
            ),
            text=text,
            mixed=definition.mixed,
            abstract=definition.abstract,
            assertions=frozenset(_xpath_text(assertion.path, assertion) for assertion in definition.assertions),
            derived=self._derivations.get(definition.name or "", {}),
            block=_blocked_derivations(definition),
        )

    def _convert_group(self, group: XsdGroup, elements: dict[str, dict[ElementDeclaration, None]]) -> ContentModel:
        """A model group as a content model. Adds its element declarations to `elements`."""
        items = [self._convert_particle(particle, elements) for particle in group]
        content_model = (
            choice_of(items)
            if group.model == "choice" and items
            else all_of(items)
            if group.model == "all"
            else sequence_of(items)
        )
        return repeat(content_model, group.min_occurs, group.max_occurs)

    def _convert_particle(self, particle: Any, elements: dict[str, dict[ElementDeclaration, None]]) -> ContentModel:
        if isinstance(particle, XsdGroup):
            return self._convert_group(particle, elements)
        if isinstance(particle, XsdAnyElement):
            return repeat(_convert_wildcard(particle), particle.min_occurs, particle.max_occurs)
        declaration = particle.ref if particle.ref is not None else particle
        alternatives = [declaration]
        if "substitution" not in (blocked_derivations := _blocked_derivations(declaration)):
            alternatives += (
                substitute
                for substitute in particle.iter_substitutes()
                if not blocked_derivations & _derivation_steps(substitute.type, declaration.type)
            )
        names: list[ContentModel] = []
        for element in alternatives:
            if not element.abstract:
                elements.setdefault(element.name, {})[self._convert_element(element)] = None
                names.append(ElementName(element.name))
        return repeat(choice_of(names), particle.min_occurs, particle.max_occurs)

    # -- simple types ---------------------------------------------------------------------------------------------

    def _convert_simple(self, definition: XsdSimpleType) -> SimpleType:
        steps: list[Any] = [definition]
        while (base_type := _simple_type_of(steps[-1].base_type)) is not None:
            steps.append(base_type)
            if len(steps) > _MAX_DERIVATION_STEPS:
                raise _derivation_too_long(definition.name)
        names = [
            step.name
            for step in steps
            if step.name and (step.name.startswith(_BUILT_IN_PREFIX) or step.schema is not self._schema)
        ]
        if "{http://www.w3.org/2001/XMLSchema}anySimpleType" not in names:
            names.append(f"{_BUILT_IN_PREFIX}anySimpleType")
        variety = next((step for step in steps if isinstance(step, XsdList | XsdUnion)), None)
        kind: str = "atomic"
        part_indexes: tuple[int, ...] = ()
        if isinstance(variety, XsdList):
            kind, part_indexes = "list", (self._type_index(variety.item_type),)
        elif isinstance(variety, XsdUnion):
            kind, part_indexes = "union", tuple(map(self._type_index, variety.member_types))
        return SimpleType(tuple(names), kind, self._start_offset(definition), part_indexes, **_combine_facets(steps))


def _simple_type_of(base_type: Any) -> XsdSimpleType | None:
    """The simple type from which another derives, also where it is the content of a complex type."""
    content = getattr(base_type, "content", None) if isinstance(base_type, XsdComplexType) else base_type
    return content if isinstance(content, XsdSimpleType) else None


def _blocked_derivations(declaration: Any) -> frozenset[str]:
    words = (declaration.block or "").split()
    return frozenset(("extension", "restriction", "substitution") if "#all" in words else words)


def _derivation_steps(type_definition: Any, base_type: Any) -> frozenset[str]:
    """The kinds of derivation between a type and its base type."""
    derivations: set[str] = set()
    while type_definition is not None and type_definition is not base_type:
        derivations.add(type_definition.derivation or "restriction" if type_definition.is_complex() else "restriction")
        type_definition = type_definition.base_type
    return frozenset(derivations)


def _derivation_too_long(name: str | None) -> InvalidDocument:
    return InvalidDocument(
        f"the type {name or 'without a name'} derives from more than {_MAX_DERIVATION_STEPS} others in a row"
    )


def _combine_facets(steps: Iterable[Any]) -> dict[str, Any]:
    """The facets of a simple type, combined from all steps of its derivation."""
    facets: dict[str, Any] = {"patterns": (), "assertions": frozenset()}
    for step in steps:  # nearest step first, so an existing value is the narrower one
        built_in = bool(step.name) and step.name.startswith(_BUILT_IN_PREFIX)
        for tag, facet in step.facets.items():
            if tag is None or not hasattr(facet, "elem"):
                continue
            match tag.removeprefix(_BUILT_IN_PREFIX):
                case "minInclusive" | "minExclusive" as name:
                    facets.setdefault("low", FacetBound(facet.value, name == "minExclusive"))
                case "maxInclusive" | "maxExclusive" as name:
                    facets.setdefault("high", FacetBound(facet.value, name == "maxExclusive"))
                case "length":
                    facets.setdefault("shortest", facet.value)
                    facets.setdefault("longest", facet.value)
                case "minLength":
                    facets.setdefault("shortest", facet.value)
                case "maxLength":
                    facets.setdefault("longest", facet.value)
                case "totalDigits":
                    facets.setdefault("digits", facet.value)
                case "fractionDigits":
                    facets.setdefault("fraction", facet.value)
                case "enumeration":
                    facets.setdefault("values", tuple(facet.enumeration))
                case "pattern" if not built_in:  # the name of a built-in type already determines its patterns
                    facets["patterns"] += (frozenset(pattern.get("value", "") for pattern in facet),)
                case "assertion":
                    facets["assertions"] |= {
                        _xpath_text(assertion.path, assertion)
                        for assertion in (facet if isinstance(facet, list) else [facet])
                    }
                case "whiteSpace":
                    facets.setdefault("space", facet.value)
                case "explicitTimezone":
                    facets.setdefault("zone", facet.value)
    return facets


def _convert_wildcard(wildcard: Any) -> NamespaceWildcard:
    not_names = frozenset(wildcard.not_qname)
    target = wildcard.target_namespace
    if wildcard.not_namespace:
        namespaces, excluding = frozenset(wildcard.not_namespace), True
    elif "##any" in wildcard.namespace:
        namespaces, excluding = frozenset[str](), True
    elif "##other" in wildcard.namespace:
        namespaces, excluding = frozenset(("", target)), True
    else:
        namespaces, excluding = frozenset(wildcard.namespace), False
    return NamespaceWildcard(namespaces, excluding, _STRICTNESS[wildcard.process_contents], not_names)


def _identity_text(identity: Any) -> str:
    """A uniqueness rule as a text that is equal for equal rules, independent of their names."""
    referred = getattr(identity, "refer", None)
    target = (
        ""
        if referred is None
        else " of " + _identity_text(referred)
        if hasattr(referred, "selector")
        else f" of {referred}"
    )
    fields = ", ".join(_xpath_text(field.path, identity) for field in identity.fields)
    kind = identity.elem.tag.rpartition("}")[2]
    return f"{kind} {_xpath_text(identity.selector.path, identity) if identity.selector else ''} ({fields}){target}"


def _xpath_text(path: str, component: Any) -> str:
    """An XPath expression with namespaces instead of prefixes."""
    namespaces = component.schema.namespaces
    return PREFIX_PATTERN.sub(lambda part: part[1] or f"{{{namespaces.get(part[2], part[2])}}}", path)
