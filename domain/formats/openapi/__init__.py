"""OpenAPI documents: `openapi/2.0`, `openapi/3.0`, `openapi/3.1`, `openapi/3.2`, each also with a patch number.

They are JSON or YAML. Two of them are not compared: no kept library in Python is known to do it.
Nothing is fetched: a document with references to elsewhere is held to its meta-schema, and not to the rules across its
parts, which need what is there.
Spec: OpenAPI 2.0, 3.0, 3.1, 3.2. Rules SC-10, SC-14, SC-16.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from jsonschema_path.paths import SchemaPath
from referencing.exceptions import Unresolvable

from domain.formats.contract import Spot, Violation
from domain.formats.openapi.metaschema import VALIDATORS, flaw, with_patterns
from domain.formats.openapi.places import in_default, reference, shown, spot
from domain.formats.openapi.reading import read

__all__ = ["canonical", "parse"]


def parse(document: bytes, name: str) -> dict[str, Any]:
    """The document as JSON has it, once it is one of the version that was declared.

    About 10 ms for 2 kB. Raises: Violation, with a pointer, or with the line where the text itself is broken.
    """
    try:
        found = read(document)
        if not isinstance(found, dict):
            raise Violation("the document is not an object", Spot(pointer="", fragment=shown(found)))
        _check(found, name.rpartition("/")[2])
    except RecursionError:
        raise Violation("the document nests its parts too deeply, or a part refers to itself alone") from None
    return found


def canonical(parsed: dict[str, Any]) -> bytes:
    """JSON without whitespace, the names of every object in the order of their code points."""
    return json.dumps(parsed, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode(
        "utf-8", "surrogatepass"
    )


# -- validity ---------------------------------------------------------------------------------------------------------


def _check(found: dict[str, Any], version: str) -> None:
    family = ".".join(version.split(".")[:2])
    keyword = "swagger" if family == "2.0" else "openapi"
    declared = found.get(keyword)
    if not isinstance(declared, str):
        raise Violation(f"the document does not say `{keyword}`", Spot(pointer="", fragment=shown(found)))
    if declared != version and ".".join(declared.split(".")[:2]) != version:
        text = f"the document is of version {declared[:20]}, declared is {version}"
        raise Violation(text, Spot(pointer=f"/{keyword}", fragment=shown(declared)))
    validator, shaped = VALIDATORS[family], with_patterns(found)
    try:
        if (error := flaw(family, shaped)) is not None:
            raise _violation(found, error, error.instance_path)
        if not _reaches_out(found):
            # Not its `iter_errors`, which keeps every document that it has ever seen.
            checker = validator(SchemaPath.from_dict(shaped, handlers=_Nowhere()))
            for error in checker.root_validator(checker.schema_path):
                raise _violation(found, error, _of_defaults(shaped, error))
    except (Violation, RecursionError):
        raise
    except Unresolvable as error:
        raise Violation(
            f"the reference {error.ref} leads nowhere"[:500], Spot(pointer=reference(found, error.ref))
        ) from None
    except Exception as error:  # whatever the library meets in a document that nobody trusts
        raise Violation(f"the document cannot be checked: {type(error).__name__}: {error}"[:500]) from None


def _of_defaults(found: Any, error: Any) -> list[Any]:
    """Where an error across parts is: those of defaults tell the place within the default."""
    path = list(getattr(error, "absolute_path", ()))
    return in_default(found, getattr(error, "schema", None), path, getattr(error, "instance", None))


def _violation(found: Any, error: Any, path: Sequence[Any]) -> Violation:
    text = str(getattr(error, "message", error)).partition("\n")[0].rstrip(".")
    return Violation(text[:500], spot(found, path))


def _reaches_out(found: Any) -> bool:
    """Whether anything in a document is to be found elsewhere, or has another base than the document."""
    waiting = [found]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            for name in ("$ref", "$dynamicRef", "$recursiveRef"):
                if isinstance(value.get(name), str) and not value[name].startswith("#"):
                    return True
            if any(isinstance(value.get(name), str) for name in ("$id", "$schema", "$self", "jsonSchemaDialect")):
                return True
            waiting.extend(value.values())
        elif isinstance(value, list):
            waiting.extend(value)
    return False


class _Nowhere(dict[str, Callable[[str], NoReturn]]):
    """What brings documents for references: nothing, for any scheme."""

    def __contains__(self, scheme: object) -> bool:
        return True

    def __missing__(self, scheme: str) -> Callable[[str], NoReturn]:
        return _refuse


def _refuse(uri: str) -> NoReturn:
    raise LookupError(f"{uri} is not fetched")
