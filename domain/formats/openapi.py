"""OpenAPI documents: `openapi/2.0`, `openapi/3.0`, `openapi/3.1`, `openapi/3.2`, each also with a patch number.

They are JSON or YAML. Two of them are not compared: no kept library in Python is known to do it.
Nothing is fetched: a document with references to elsewhere is held to its meta-schema, and not to the rules across its
parts, which need what is there.
Spec: OpenAPI 2.0, 3.0, 3.1, 3.2. Rules SC-10, SC-14, SC-16.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, NoReturn

import yaml
from jsonschema_path.paths import SchemaPath
from openapi_spec_validator import (
    OpenAPIV2SpecValidator,
    OpenAPIV30SpecValidator,
    OpenAPIV31SpecValidator,
    OpenAPIV32SpecValidator,
)
from referencing.exceptions import Unresolvable

from domain.formats.contract import FRAGMENT, Spot, Violation

__all__ = ["canonical", "parse"]

_VALIDATORS: Final[Mapping[str, Any]] = {
    "2.0": OpenAPIV2SpecValidator,
    "3.0": OpenAPIV30SpecValidator,
    "3.1": OpenAPIV31SpecValidator,
    "3.2": OpenAPIV32SpecValidator,
}
#: Values that a document may have when every alias of it is written out.
_MOST: Final = 300_000
_DEEPEST: Final = 200


def parse(document: bytes, name: str) -> dict[str, Any]:
    """The document as JSON has it, once it is one of the version that was declared.

    About 10 ms for 2 kB. Raises: Violation, with a pointer, or with the line where the text itself is broken.
    """
    try:
        found = _read(document)
        if not isinstance(found, dict):
            raise Violation("the document is not an object", Spot(pointer="", fragment=_shown(found)))
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
        raise Violation(f"the document does not say `{keyword}`", Spot(pointer="", fragment=_shown(found)))
    if declared != version and ".".join(declared.split(".")[:2]) != version:
        text = f"the document is of version {declared[:20]}, declared is {version}"
        raise Violation(text, Spot(pointer=f"/{keyword}", fragment=_shown(declared)))
    validator = _VALIDATORS[family]
    try:
        for error in validator.schema_validator.iter_errors(found):
            raise _violation(found, error)
        if not _reaches_out(found):
            # Not its `iter_errors`, which keeps every document that it has ever seen.
            checker = validator(SchemaPath.from_dict(found, handlers=_Nowhere()))
            for error in checker.root_validator(checker.schema_path):
                raise _violation(found, error)
    except (Violation, RecursionError):
        raise
    except Unresolvable as error:
        raise Violation(
            f"the reference {error.ref} leads nowhere"[:500], Spot(pointer=_place(found, error.ref))
        ) from None
    except Exception as error:  # whatever the library meets in a document that nobody trusts
        raise Violation(f"the document cannot be checked: {type(error).__name__}: {error}"[:500]) from None


def _violation(found: Any, error: Any) -> Violation:
    path = list(getattr(error, "absolute_path", None) or getattr(error, "instance_path", None) or ())
    value = found
    for part in path:
        value = value[part]
    pointer = "".join("/" + _escaped(part) for part in path)
    text = str(getattr(error, "message", error)).partition("\n")[0].rstrip(".")
    return Violation(text[:500], Spot(pointer=pointer, fragment=_shown(value)))


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


def _place(found: Any, fragment: str) -> str | None:
    """Where a reference is that ends with a fragment of a URI."""
    waiting = [("", found)]
    while waiting:
        pointer, value = waiting.pop()
        if isinstance(value, dict):
            if isinstance(value.get("$ref"), str) and value["$ref"].endswith(fragment):
                return f"{pointer}/$ref"
            waiting.extend((f"{pointer}/{_escaped(name)}", part) for name, part in value.items())
        elif isinstance(value, list):
            waiting.extend((f"{pointer}/{at}", part) for at, part in enumerate(value))
    return None


def _escaped(name: object) -> str:
    return str(name).replace("~", "~0").replace("/", "~1")


def _shown(value: Any) -> str:
    if isinstance(value, dict | list) and len(value) > FRAGMENT:
        value = dict(list(value.items())[:FRAGMENT]) if isinstance(value, dict) else value[:FRAGMENT]
    return json.dumps(value, ensure_ascii=False, default=str)[:FRAGMENT]


# -- JSON and YAML ----------------------------------------------------------------------------------------------------


def _read(document: bytes) -> Any:
    try:
        text = document.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Violation("the document is not UTF-8", Spot(line=document.count(b"\n", 0, error.start) + 1)) from None
    if not text.strip():
        raise Violation("the document is empty", Spot(line=1))
    if text.lstrip()[0] not in '{["':
        return _from_yaml(text)
    found = _from_json(text)
    if isinstance(found, str):  # YAML inside of JSON, which may name characters that there are not
        return _from_yaml(found.encode("utf-8", "replace").decode())
    return found


def _from_json(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number, parse_float=_number)
    except json.JSONDecodeError as error:
        if text.lstrip()[0] == "{" and "\n" in text:  # YAML in braces
            try:
                return _from_yaml(text)
            except Violation:
                pass
        raise Violation(f"the document is not JSON: {error.msg}", Spot(line=error.lineno)) from None
    except ValueError as error:
        raise Violation(f"the document is not JSON: {error}"[:500]) from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        twice = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise Violation(f"the name {twice[:50]!r} occurs twice in an object", Spot(fragment=_shown(twice)))
    return made


def _number(text: str) -> float:
    number = float(text)
    return number if number - number == 0 else _no_number(text)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number")


class _Values(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML as far as it says what JSON can say: times stay text, and only `true` and `false` are booleans."""


_Values.yaml_implicit_resolvers = {
    letter: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
    for letter, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_BOOLEANS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


def _from_yaml(text: str) -> Any:
    loader = _Values(text)
    try:
        _shallow(text)
        root = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise Violation(f"the document is not YAML: {error.problem}", Spot(line=line)) from None
    except yaml.YAMLError as error:
        raise Violation(f"the document is not YAML: {error}"[:500], Spot(line=1)) from None
    finally:
        loader.dispose()
    if root is None:
        raise Violation("the document is empty", Spot(line=1))
    return _Plain().value(root, 0)


def _shallow(text: str) -> None:
    """Looks how deep YAML goes before anything recursive does: in C, that would end the process. Raises: Violation."""
    depth = 0
    for event in yaml.parse(text, Loader=_Values):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEEPEST:
            raise _at(event, f"the document has more than {_DEEPEST} levels")


class _Plain:
    """From the nodes of YAML to values, every alias written out, as far as that goes."""

    def __init__(self) -> None:
        self._count = 0

    def value(self, node: Any, depth: int) -> Any:
        self._count += 1
        if self._count > _MOST or depth > _DEEPEST:
            raise _at(node, "the document is too large or too deep when its aliases are written out")
        if isinstance(node, yaml.MappingNode):
            return dict(self._pairs(node, depth))
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, depth + 1) for item in node.value]
        return _scalar(node)

    def _pairs(self, node: Any, depth: int) -> Iterator[tuple[str, Any]]:
        seen = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _at(key, "a name is not text")
            if key.value in seen:
                raise _at(key, f"the name {key.value[:50]!r} occurs twice in an object")
            seen.add(key.value)
            yield key.value, self.value(value, depth + 1)


def _scalar(node: Any) -> Any:
    kind, text = node.tag.removeprefix("tag:yaml.org,2002:"), node.value
    try:
        match kind:
            case "null":
                return None
            case "bool":
                return _BOOLEANS.get(text, text)
            case "int":
                if ":" not in text:  # 12:30 is a number to old readers only
                    return int(text.replace("_", ""), 0 if text.lstrip("+-").startswith(("0x", "0o", "0b")) else 10)
                return text
            case "float" if text.lstrip("+-")[1:].lower() not in ("inf", "nan"):
                number = float(text.replace("_", ""))
                if number - number == 0:
                    return number
            case "str" | "value":
                return text
    except ValueError:
        return text
    raise _at(node, f"{text[:50]!r} is nothing that JSON can say")


def _at(node: Any, text: str) -> Violation:
    return Violation(text, Spot(line=node.start_mark.line + 1))
