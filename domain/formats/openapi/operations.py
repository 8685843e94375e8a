"""The operations of a document, in the same form for every version of OpenAPI."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from annals.domain.values.json_pointer import join_pointer, split_pointer

_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace", "query")
_TEMPLATE: Final = re.compile(r"\{([^}]*)\}")
#: Steps of references that may follow each other.
_MAX_STEPS: Final = 32
#: The default style of a parameter by its place, and the styles whose lists are exploded by default.
_STYLES: Final = {"formData": "form", "query": "form", "cookie": "form", "path": "simple", "header": "simple"}
_EXPLODED: Final = ("form", "multi")
#: Keywords of a parameter of version 2.0 that are not those of its schema.
_NO_SCHEMA: Final = frozenset({"name", "in", "required", "description", "allowEmptyValue", "collectionFormat"})
_FORM_TYPES: Final = ("multipart/form-data", "application/x-www-form-urlencoded")


class OperationPlace(NamedTuple):
    """A value of a document. A reference that leads out of the document is its value."""

    pointer: str
    value: Any


#: The place of a schema by media type; None for content without one.
Content = Mapping[str, OperationPlace | None]


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter or a header. style: how its value is written. schema: of its value; None where it has none."""

    name: str
    pointer: str
    required: bool
    style: str
    schema: OperationPlace | None


@dataclass(frozen=True, slots=True)
class Body:
    """The body of a request."""

    pointer: str
    required: bool
    content: Content


@dataclass(frozen=True, slots=True)
class ApiResponse:
    """A response. headers: by lower-case name."""

    pointer: str
    content: Content
    headers: Mapping[str, Parameter]


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation. name: its method and path. parameters: by place, and by name or, in paths, by position.

    security: alternatives, each with the scopes of its schemes.
    """

    name: str
    pointer: str
    parameters: Mapping[tuple[str, str], Parameter]
    body: Body | None
    responses: Mapping[str, ApiResponse]
    security: tuple[Mapping[str, frozenset[str]], ...] = ()
    security_pointer: str = ""


@dataclass(frozen=True, slots=True)
class ApiPath:
    """A path. operations: by method. outside: references of its parts that lead out of the document."""

    template: str
    pointer: str
    operations: Mapping[str, Operation]
    outside: frozenset[str]


def read_paths(document: Mapping[str, Any]) -> dict[str, ApiPath]:
    """The paths of a document, by template without the names of parameters."""
    return _OperationReader(document).paths()


class _OperationReader:
    """Reads one document; `is_swagger` is for version 2.0."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self._document = document
        self._is_swagger = "swagger" in document
        self._outside: set[str] = set()

    def paths(self) -> dict[str, ApiPath]:
        found: dict[str, ApiPath] = {}
        for template, item in _members(OperationPlace("/paths", self._document.get("paths"))):
            if template.startswith("/"):
                self._outside = set()
                found[_TEMPLATE.sub("{}", template)] = self._path(template, self._resolve(item))
        return found

    def _path(self, template: str, item: OperationPlace) -> ApiPath:
        methods = ((method, place) for method, place in _members(item) if method in _METHODS)
        operations = {method: self._operation(template, method, item, place) for method, place in methods}
        return ApiPath(template, item.pointer, operations, frozenset(self._outside))

    def _operation(self, template: str, method: str, item: OperationPlace, operation: OperationPlace) -> Operation:
        declared = {
            (parameter.value.get("in"), parameter.value.get("name")): parameter
            for owner in (item, operation)
            for parameter in map(self._resolve, _items(_member(owner, "parameters")))
            if isinstance(parameter.value, dict)
        }
        bodies = [place for (kind, _), place in declared.items() if kind in ("body", "formData")]
        positions = {name: str(index) for index, name in enumerate(_TEMPLATE.findall(template))}
        parameters = {
            (kind, positions.get(name, name) if kind == "path" else name.lower() if kind == "header" else name): (
                self._parameter(name, kind, place)
            )
            for (kind, name), place in declared.items()
            if isinstance(name, str) and kind in _STYLES
        }
        responses = {
            status.upper(): self._response(operation, self._resolve(place))
            for status, place in _members(_member(operation, "responses"))
            if not status.startswith("x-")
        }
        security = _member(operation, "security")
        if security.value is None:
            security = OperationPlace("/security", self._document.get("security"))
        return Operation(
            name=f"{method.upper()} {template}",
            pointer=operation.pointer,
            parameters=parameters,
            body=self._swagger_body(operation, bodies) if self._is_swagger else self._body(operation),
            responses=responses,
            security=tuple(_alternatives(security.value)),
            security_pointer=operation.pointer if security.value is None else security.pointer,
        )

    def _parameter(self, name: str, kind: str, place: OperationPlace) -> Parameter:
        value = place.value
        schema: OperationPlace | None = _member(place, "schema")
        style = value.get("style", value.get("collectionFormat", _STYLES[kind]))
        explode = value.get("explode", style in _EXPLODED)
        if self._is_swagger:
            members = {keyword: member for keyword, member in value.items() if keyword not in _NO_SCHEMA}
            schema = OperationPlace(place.pointer, members)
        elif isinstance(value.get("content"), dict):
            style, schema = next(iter(self._content(_member(place, "content")).items()), (style, None))
        is_required = kind == "path" or value.get("required") is True
        has_schema = schema is not None and schema.value is not None
        return Parameter(name, place.pointer, is_required, f"{style}, {explode}", schema if has_schema else None)

    def _body(self, operation: OperationPlace) -> Body | None:
        body = self._resolve(_member(operation, "requestBody"))
        if not isinstance(body.value, dict):
            return None
        return Body(body.pointer, body.value.get("required") is True, self._content(_member(body, "content")))

    def _swagger_body(self, operation: OperationPlace, bodies: list[OperationPlace]) -> Body | None:
        """The body of version 2.0, which is a parameter, or a form whose fields are parameters."""
        if not bodies:
            return None
        is_required = any(place.value.get("required") is True for place in bodies)
        first, media_types = bodies[0], self._media_types(operation, "consumes")
        if first.value["in"] == "body":
            return Body(first.pointer, is_required, dict.fromkeys(media_types, _member(first, "schema")))
        forms = [media_type for media_type in media_types if media_type in _FORM_TYPES] or _FORM_TYPES[1:]
        return Body(first.pointer, is_required, dict.fromkeys(forms))

    def _response(self, operation: OperationPlace, response: OperationPlace) -> ApiResponse:
        if self._is_swagger:
            schema = _member(response, "schema")
            has_content = isinstance(schema.value, dict)
            content: Content = dict.fromkeys(self._media_types(operation, "produces"), schema) if has_content else {}
        else:
            content = self._content(_member(response, "content"))
        headers = {
            name.lower(): self._parameter(name, "header", place)
            for name, header in _members(_member(response, "headers"))
            if isinstance((place := self._resolve(header)).value, dict)
        }
        return ApiResponse(response.pointer, content, headers)

    def _content(self, content: OperationPlace) -> Content:
        found: dict[str, OperationPlace | None] = {}
        for media_type, place in _members(content):
            schema = _member(self._resolve(place), "schema")
            found[media_type.lower().replace(" ", "")] = None if schema.value is None else schema
        return found

    def _media_types(self, operation: OperationPlace, keyword: str) -> list[str]:
        declared = operation.value.get(keyword, self._document.get(keyword)) or ["*/*"]
        return [str(media_type).lower().replace(" ", "") for media_type in declared]

    def _resolve(self, place: OperationPlace) -> OperationPlace:
        """The value that a reference within the document leads to; another one stays what it is."""
        for _ in range(_MAX_STEPS):
            reference = place.value.get("$ref") if isinstance(place.value, dict) else None
            if not isinstance(reference, str):
                return place
            if not reference.startswith("#/"):
                self._outside.add(reference)
                return place
            target: Any = self._document
            for step in split_pointer(reference[1:]):
                target = target.get(step) if isinstance(target, dict) else None
            place = OperationPlace(reference[1:], target)
        return place


def _alternatives(security: Any) -> Iterator[Mapping[str, frozenset[str]]]:
    """The alternatives of credentials; one without any where nothing is required."""
    if not security:
        yield {}
        return
    for alternative in security:
        yield {name: frozenset(scopes) for name, scopes in alternative.items()}


def _member(place: OperationPlace, name: str) -> OperationPlace:
    value = place.value.get(name) if isinstance(place.value, dict) else None
    return OperationPlace(join_pointer(place.pointer, name), value)


def _members(place: OperationPlace) -> Iterator[tuple[str, OperationPlace]]:
    for name in place.value if isinstance(place.value, dict) else ():
        yield str(name), _member(place, name)


def _items(place: OperationPlace) -> Iterator[OperationPlace]:
    for index, value in enumerate(place.value if isinstance(place.value, list) else ()):
        yield OperationPlace(join_pointer(place.pointer, index), value)
