"""OpenAPI documents: `openapi/2.0`, `openapi/3.0`, `openapi/3.1`, `openapi/3.2`, each also with a patch number.

They are JSON or YAML. The writer is the document that a client was written against, the reader that of the server that
answers it: `incompatibilities(reader, writer)` lists what a server with `reader` breaks for clients of `writer`. No
maintained Python library does this; tests compare the result with oasdiff.
Nothing is fetched: a document with external references is checked against its meta-schema only. The rules across its
parts are not checked, because they need the referenced documents. Begin with `load.py`, then
`operations.py` and `comparison.py`.
Spec: OpenAPI 2.0, 3.0, 3.1, 3.2. Rules SC-10, SC-14, SC-16.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from jsonschema_path.paths import SchemaPath
from referencing.exceptions import Unresolvable

from annals.domain.formats.contract import (
    MAX_INCOMPATIBILITIES,
    DocumentLocation,
    Incompatibility,
    InvalidDocument,
    NewerSide,
)
from annals.domain.formats.json_fragment import json_fragment
from annals.domain.formats.openapi.comparison import find_incompatibilities
from annals.domain.formats.openapi.load import load_document
from annals.domain.formats.openapi.locations import location_at, path_in_default, reference_pointer
from annals.domain.formats.openapi.metaschema import VALIDATORS, metaschema_error, with_supported_patterns

__all__ = ["canonical_form", "incompatibilities", "parse"]


def parse(document: bytes, name: str) -> dict[str, Any]:
    """The document as a JSON value, checked against its declared version.

    About 10 ms for 2 kB. Raises: InvalidDocument, with a pointer, or with the line of a syntax error.
    """
    try:
        value = load_document(document)
        if not isinstance(value, dict):
            raise InvalidDocument(
                "the document is not an object", DocumentLocation(pointer="", fragment=json_fragment(value))
            )
        _check_version(value, name.rpartition("/")[2])
    except RecursionError:
        raise InvalidDocument("the document nests its parts too deeply, or a part refers to itself alone") from None
    return value


def canonical_form(parsed: dict[str, Any]) -> bytes:
    """JSON without whitespace, with the names of every object in code point order."""
    return json.dumps(parsed, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


def incompatibilities(
    reader: dict[str, Any],
    writer: dict[str, Any],
    _newer: NewerSide | None = None,
    /,
    *,
    limit: int = MAX_INCOMPATIBILITIES,
) -> Sequence[Incompatibility]:
    """Why clients of one document do not work with a server of the other, with pointers into both.

    reader: the description of the server. writer: that of the clients. Cost: see `comparison.find_incompatibilities`.
    """
    return [] if canonical_form(reader) == canonical_form(writer) else find_incompatibilities(reader, writer, limit)


# -- validity ---------------------------------------------------------------------------------------------------------


def _check_version(value: dict[str, Any], version: str) -> None:
    family = ".".join(version.split(".")[:2])
    keyword = "swagger" if family == "2.0" else "openapi"
    declared = value.get(keyword)
    if not isinstance(declared, str):
        raise InvalidDocument(
            f"the document does not have `{keyword}`", DocumentLocation(pointer="", fragment=json_fragment(value))
        )
    if declared != version and ".".join(declared.split(".")[:2]) != version:
        text = f"the document is of version {declared[:20]}, but its format names {version}"
        raise InvalidDocument(text, DocumentLocation(pointer=f"/{keyword}", fragment=json_fragment(declared)))
    validator, checkable = VALIDATORS[family], with_supported_patterns(value)
    try:
        if (error := metaschema_error(family, checkable)) is not None:
            raise _invalid_document(value, error, error.instance_path)
        if not _has_outside_references(value):
            # Not the library's `iter_errors`, which keeps every document in memory for ever.
            checker = validator(SchemaPath.from_dict(checkable, handlers=_NoFetching()))
            for error in checker.root_validator(checker.schema_path):
                raise _invalid_document(value, error, _path_of_error(checkable, error))
    except (InvalidDocument, RecursionError):
        raise
    except Unresolvable as error:
        raise InvalidDocument(
            f"the reference {error.ref} leads to nothing in the document"[:500],
            DocumentLocation(pointer=reference_pointer(value, error.ref)),
        ) from None
    except Exception as error:  # the library may raise anything for untrusted documents
        raise InvalidDocument(f"the document cannot be checked: {type(error).__name__}: {error}"[:500]) from None


def _path_of_error(value: Any, error: Any) -> list[Any]:
    """The path of an error across parts; for an error in a default, its path starts at the default."""
    path = list(getattr(error, "absolute_path", ()))
    return path_in_default(value, getattr(error, "schema", None), path, getattr(error, "instance", None))


def _invalid_document(value: Any, error: Any, path: Sequence[Any]) -> InvalidDocument:
    text = str(getattr(error, "message", error)).partition("\n")[0].rstrip(".")
    return InvalidDocument(text[:500], location_at(value, path))


def _has_outside_references(document: Any) -> bool:
    """Whether a document refers to anything outside of itself, or changes its base URI."""
    pending = [document]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            for name in ("$ref", "$dynamicRef", "$recursiveRef"):
                if isinstance(value.get(name), str) and not value[name].startswith("#"):
                    return True
            if any(isinstance(value.get(name), str) for name in ("$id", "$schema", "$self", "jsonSchemaDialect")):
                return True
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)
    return False


class _NoFetching(dict[str, Callable[[str], NoReturn]]):
    """The fetch handlers of the library, by URI scheme: all of them refuse."""

    def __contains__(self, scheme: object) -> bool:
        return True

    def __missing__(self, scheme: str) -> Callable[[str], NoReturn]:
        return _refuse_fetch


def _refuse_fetch(uri: str) -> NoReturn:
    raise LookupError(f"{uri} is not fetched")
