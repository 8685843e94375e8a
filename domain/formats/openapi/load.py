"""Parses OpenAPI documents from JSON, or from the part of YAML that JSON can express."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final, NoReturn

import yaml

from annals.domain.formats.contract import DocumentLocation, InvalidDocument, decode_text
from annals.domain.formats.json_fragment import json_fragment

#: Maximum values of a document with all YAML aliases expanded.
_MAX_NODES: Final = 300_000
_MAX_DEPTH: Final = 200
_TOO_DEEP: Final = f"the document has more than {_MAX_DEPTH} levels"


def load_document(document: bytes) -> Any:
    """The value of a document. Raises: InvalidDocument, with the line of a syntax error."""
    text = decode_text(document)
    if not text.strip():
        raise InvalidDocument("the document is empty", DocumentLocation(line=1))
    if text.lstrip()[0] not in '{["':
        return _load_yaml(text)
    value = _load_json(text)
    if isinstance(value, str):  # YAML inside of a JSON string, which may contain invalid characters
        return _load_yaml(value.encode("utf-8", "replace").decode())
    return value


def _load_json(text: str) -> Any:
    try:
        return json.loads(
            text, object_pairs_hook=_dict_of_unique_names, parse_constant=_refuse_number, parse_float=_parse_number
        )
    except json.JSONDecodeError as error:
        if text.lstrip()[0] == "{" and "\n" in text:  # YAML in braces
            try:
                return _load_yaml(text)
            except InvalidDocument:
                pass
        raise InvalidDocument(f"the document is not JSON: {error.msg}", DocumentLocation(line=error.lineno)) from None
    except ValueError as error:
        raise InvalidDocument(f"the document is not JSON: {error}"[:500]) from None


def _dict_of_unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) < len(pairs):
        duplicate = next(name for name, times in Counter(name for name, _ in pairs).items() if times > 1)
        raise InvalidDocument(
            f"the name {duplicate[:50]!r} occurs twice in an object",
            DocumentLocation(fragment=json_fragment(duplicate)),
        )
    return members


def _parse_number(text: str) -> float:
    number = float(text)
    return number if number - number == 0 else _refuse_number(text)


def _refuse_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number")


_RESOLVERS: Final = {
    letter: [pair for pair in pairs if pair[0] != "tag:yaml.org,2002:timestamp"]
    for letter, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
#: YAML restricted to JSON values: times stay text, and only `true` and `false` are booleans. Uses the C implementation
#: where PyYAML was built with it.
_YamlLoader: Final[type[yaml.SafeLoader]] = type(
    "_Values", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {"yaml_implicit_resolvers": _RESOLVERS}
)
_BOOLEANS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}


def _load_yaml(text: str) -> Any:
    loader = _YamlLoader(text)
    try:
        _check_depth(text)
        root = loader.get_single_node()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        # libyaml from 0.2.6 on has a limit of its own, and reads ahead, so it may notice before `_check_depth`.
        is_too_deep = "nesting depth" in str(error.problem)
        text = _TOO_DEEP if is_too_deep else f"the document is not YAML: {error.problem}"
        raise InvalidDocument(text, DocumentLocation(line=line)) from None
    except yaml.YAMLError as error:
        raise InvalidDocument(f"the document is not YAML: {error}"[:500], DocumentLocation(line=1)) from None
    finally:
        loader.dispose()
    if root is None:
        raise InvalidDocument("the document is empty", DocumentLocation(line=1))
    return _YamlConverter().value(root, 0)


def _check_depth(text: str) -> None:
    """Checks the nesting depth of YAML before any recursive code runs, because the C code would crash the process.

    Raises: InvalidDocument.
    """
    depth = 0
    for event in yaml.parse(text, Loader=_YamlLoader):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _MAX_DEPTH:
            raise _invalid_node(event, _TOO_DEEP)


class _YamlConverter:
    """Converts YAML nodes to values. Expands all aliases, up to a limit."""

    def __init__(self) -> None:
        self._count = 0

    def value(self, node: Any, depth: int) -> Any:
        self._count += 1
        if self._count > _MAX_NODES or depth > _MAX_DEPTH:
            raise _invalid_node(node, "the document is too large or too deep when its aliases are written out")
        if isinstance(node, yaml.MappingNode):
            return dict(self._pairs(node, depth))
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, depth + 1) for item in node.value]
        return _scalar_value(node)

    def _pairs(self, node: Any, depth: int) -> Iterator[tuple[str, Any]]:
        known_names = set()
        for key, value in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _invalid_node(key, "a name has to be text")
            if key.value in known_names:
                raise _invalid_node(key, f"the name {key.value[:50]!r} occurs twice in an object")
            known_names.add(key.value)
            yield key.value, self.value(value, depth + 1)


def _scalar_value(node: Any) -> Any:
    kind, text = node.tag.removeprefix("tag:yaml.org,2002:"), node.value
    try:
        match kind:
            case "null":
                return None
            case "bool":
                return _BOOLEANS.get(text, text)
            case "int":
                if ":" not in text:  # 12:30 is a number in YAML 1.1 only
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
    raise _invalid_node(node, f"{text[:50]!r} cannot be written in JSON")


def _invalid_node(node: Any, text: str) -> InvalidDocument:
    return InvalidDocument(text, DocumentLocation(line=node.start_mark.line + 1))
