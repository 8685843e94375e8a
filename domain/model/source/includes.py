"""`$include` and `$includes`: directives of a modelsource, replaced by what they name.

Spec: Registry Model 1.0-rc4, "Includes in the xRegistry Model Data".
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import unquote, urljoin, urlsplit

from annals.domain.model.model_errors import ModelPath, model_error

#: Reads a document by its name: the reference of a directive, resolved against that of the including document.
Include = Callable[[str], Any]

#: The maximum number of includes in one model, and their maximum depth: small documents can expand to large ones.
_MAX_INCLUDES: Final = 200
_MAX_DEPTH: Final = 50
#: The maximum number of objects in one model; included ones count each time. They are compiled while other writers
#: wait.
MAX_OBJECTS: Final = 20_000
#: The maximum number of elements of all arrays in one model, such as `enum`; they are checked at that time too.
MAX_ELEMENTS: Final = 300_000


@dataclass(frozen=True, slots=True)
class _IncludeContext:
    """The state of the resolver: in a document, inside a chain of includes.

    name: of the document, empty for the modelsource itself. is_lenient: whether `#groups` is accepted for `#/groups`.
    """

    name: str
    document: Any
    include: Include | None
    is_lenient: bool
    chain: tuple[tuple[str, str], ...] = ()
    documents_by_name: dict[str, Any] = field(default_factory=dict)
    include_count: list[int] = field(default_factory=lambda: [0])
    object_count: list[int] = field(default_factory=lambda: [0])
    element_count: list[int] = field(default_factory=lambda: [0])


def expand_includes(source: Any, include: Include | None = None, is_lenient: bool = False) -> Any:
    """The modelsource without directives; the given one is not changed.

    include: None if there is no base, so that only the modelsource itself can be included.
    is_lenient: whether a fragment may lack its leading slash, as in a published model file (CM-05).
    Raises: ModelError.
    """
    return _resolve(source, (), _IncludeContext("", source, include, is_lenient))


def _resolve(value: Any, model_path: ModelPath, source: _IncludeContext) -> Any:
    if isinstance(value, list):
        source.element_count[0] += len(value)
        if source.element_count[0] > MAX_ELEMENTS:
            raise model_error((), f"its arrays have more than {MAX_ELEMENTS} elements; list fewer values")
        return [_resolve(member, (*model_path, index), source) for index, member in enumerate(value)]
    if not isinstance(value, dict):
        return value
    source.object_count[0] += 1
    if source.object_count[0] > MAX_OBJECTS:
        raise model_error((), f"it has more than {MAX_OBJECTS} objects; define fewer types and attributes")
    result = {
        name: _resolve(member, (*model_path, name), source)
        for name, member in value.items()
        if name not in ("$include", "$includes")
    }
    for reference in _parse_references(value, model_path):
        for name, member in _read_include(reference, model_path, source).items():
            # An existing member has precedence: a sibling of the directive, or a member of an earlier reference.
            result.setdefault(name, member)
    return result


def _parse_references(value: dict[str, Any], model_path: ModelPath) -> list[str]:
    single, multiple = value.get("$include"), value.get("$includes")
    if single is not None and multiple is not None:
        raise model_error(model_path, "it has both $include and $includes")
    references = multiple if multiple is not None else [] if single is None else [single]
    if not isinstance(references, list) or not all(isinstance(reference, str) for reference in references):
        raise model_error(model_path, "$include takes one string, and $includes takes an array of strings")
    return references


def _read_include(reference: str, model_path: ModelPath, source: _IncludeContext) -> dict[str, Any]:
    path, _, fragment = reference.partition("#")
    name = _join_name(source.name, path) if path else source.name
    if (name, fragment) in source.chain:
        raise model_error(model_path, f"{reference} includes itself")
    source.include_count[0] += 1
    if source.include_count[0] > _MAX_INCLUDES or len(source.chain) > _MAX_DEPTH:
        raise model_error(model_path, "it includes too much")
    document = source.document if name == source.name else _read_document(name, reference, model_path, source)
    target = _value_at_pointer(document, fragment, reference, model_path, source.is_lenient)
    inner_source = replace(source, name=name, document=document, chain=(*source.chain, (name, fragment)))
    members: dict[str, Any] = _resolve(target, model_path, inner_source)
    return {key: member for key, member in members.items() if key != "$schema"}


def _read_document(name: str, reference: str, model_path: ModelPath, source: _IncludeContext) -> Any:
    if source.include is None:
        raise model_error(model_path, f"{reference} cannot be included: no base for includes is configured")
    if name not in source.documents_by_name:
        try:
            source.documents_by_name[name] = source.include(name)
        except (OSError, ValueError, LookupError) as error:
            raise model_error(model_path, f"{reference} cannot be included: {error}") from error
    return source.documents_by_name[name]


def _join_name(base_name: str, path: str) -> str:
    """The name of a document to which another one refers."""
    if urlsplit(path).scheme or urlsplit(base_name).scheme:
        return urljoin(base_name, path)
    return posixpath.normpath(posixpath.join(posixpath.dirname(base_name), path))


def _value_at_pointer(
    document: Any, fragment: str, reference: str, model_path: ModelPath, is_lenient: bool
) -> dict[str, Any]:
    """The value that a JSON Pointer (RFC 6901), written as a fragment, names."""
    pointer = unquote(fragment)
    if pointer and not pointer.startswith("/"):
        if not is_lenient:
            raise model_error(
                model_path, f"the fragment of {reference} is not a JSON Pointer: it does not start with /"
            )
        pointer = f"/{pointer}"
    value = document
    for step in pointer.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        value = value.get(name) if isinstance(value, dict) else None
    if not isinstance(value, dict):
        raise model_error(model_path, f"{reference} does not name an object")
    return value
