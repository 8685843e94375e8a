"""GraphQL schemas: `graphql/june2018`, `graphql/october2021`, `graphql/september2025`.

A document is in the schema definition language. The writer is the schema that a client was written against, the reader
the schema of the server that answers it. So a Version is backward compatible when clients of its ancestor still work
with it: `incompatibilities(reader, writer)` lists what a server with `reader` breaks for clients of `writer`. Changes
that graphql-core calls dangerous but not breaking (a further enum value, another default) are allowed, because SC-36
allows further values.
Spec: GraphQL, editions of June 2018, October 2021, September 2025, "Type System". Rules SC-10, SC-14, SC-16.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from graphql import (
    GraphQLError,
    GraphQLSchema,
    Node,
    OperationType,
    TypeSystemDefinitionNode,
    TypeSystemExtensionNode,
    build_ast_schema,
    find_breaking_changes,
    print_ast,
    strip_ignored_characters,
    validate_schema,
)
from graphql import parse as parse_document
from graphql.validation.validate import validate_sdl

from annals.domain.formats.contract import (
    MAX_FRAGMENT,
    MAX_INCOMPATIBILITIES,
    DocumentLocation,
    Incompatibility,
    InvalidDocument,
    NewerSide,
    decode_text,
)

__all__ = ["GraphqlDocument", "canonical_form", "incompatibilities", "parse"]

#: The largest published schemas have some 200,000 tokens.
_MAX_TOKENS: Final = 1_000_000

#: The editions, oldest first. Features refer to them by index.
_EDITIONS: Final = ("june2018", "october2021", "september2025")
#: Part of an error message of a rule of the last edition, which graphql-core applies to all documents.
_DEPRECATION: Final = "is not deprecated, so implementation field"
#: The subject of a change: `Type`, `Type.field`, `Type.field(argument:)`, `@directive`.
_COORDINATE: Final = re.compile(r"@?[A-Za-z_]\w*(?:\.\w+)?(?:\((\w+):?\))?")
#: Keys of syntax nodes whose lists have no significant order.
_UNORDERED_KEYS: Final = {"definitions", "fields", "arguments", "types", "interfaces", "locations", "operation_types"}


@dataclass(frozen=True, slots=True)
class GraphqlDocument:
    """A schema and its source text."""

    text: str
    schema: GraphQLSchema


def parse(document: bytes, name: str) -> GraphqlDocument:
    """The schema, checked against the declared edition. A library of types needs no root type.

    About 2 ms for 2 kB, linear. Raises: InvalidDocument, with the line.
    """
    text = decode_text(document)
    try:
        return _build_document(text, name.lower().rpartition("/")[2])
    except InvalidDocument:
        raise
    except GraphQLError as error:
        raise InvalidDocument(
            error.message.removeprefix("Syntax Error: ").rstrip("."), _error_location(text, error)
        ) from None
    except RecursionError:
        raise InvalidDocument("the document nests its parts too deeply") from None
    except Exception as error:  # graphql-core may raise anything for untrusted documents
        raise InvalidDocument(f"the document is not a schema: {error}"[:500]) from None


def canonical_form(parsed: GraphqlDocument) -> bytes:
    """The schema without descriptions, comments and whitespace, with definitions and their members in a fixed order.

    Extensions stay extensions. O(n log n).
    """
    tree = parse_document(parsed.text, no_location=True)
    return strip_ignored_characters(print_ast(_normal_form(tree))).encode()


def incompatibilities(
    reader: GraphqlDocument,
    writer: GraphqlDocument,
    _newer: NewerSide | None = None,
    /,
    *,
    limit: int = MAX_INCOMPATIBILITIES,
) -> Sequence[Incompatibility]:
    """Why clients written against one schema do not work with another, with lines in both. O(size of both)."""
    old, new = writer.schema, reader.schema
    differences = [
        Incompatibility(
            f"root-{operation.value}-changed",
            f"{operation.value} starts at {writer_root}, for the reader at {reader_root or 'nothing'}",
            _first_location(reader, str(reader_root)),
            _first_location(writer, str(writer_root)),
        )
        for operation in OperationType
        if (writer_root := old.get_root_type(operation)) is not None
        and (reader_root := new.get_root_type(operation)) is not writer_root
        and str(reader_root) != str(writer_root)
    ]
    for change in find_breaking_changes(old, new)[:limit]:
        names = list(_change_subjects(change.description, is_last_first=change.type.name == "TYPE_REMOVED_FROM_UNION"))
        rule = change.type.name.lower().replace("_", "-")
        differences.append(
            Incompatibility(
                rule, change.description.rstrip("."), _first_location(reader, *names), _first_location(writer, *names)
            )
        )
    return differences[:limit]


# -- parsing ----------------------------------------------------------------------------------------------------------


def _build_document(text: str, edition: str) -> GraphqlDocument:
    tree = parse_document(text, max_tokens=_MAX_TOKENS)
    for definition in tree.definitions:
        if not isinstance(definition, TypeSystemDefinitionNode | TypeSystemExtensionNode):
            raise InvalidDocument(
                "the document holds an operation or a fragment, which is not part of a schema",
                _node_location(text, definition),
            )
    _check_edition(edition, text, tree)
    _check_no_duplicates(text, tree)
    for error in validate_sdl(tree):
        raise error
    schema = build_ast_schema(tree, assume_valid_sdl=True)
    roots = schema.query_type or schema.mutation_type or schema.subscription_type or schema.ast_node
    for error in validate_schema(schema):
        library = not roots and error.message.startswith("Query root type must be provided")
        if not library and not (edition < "september2025" and _DEPRECATION in error.message):
            raise error
    return GraphqlDocument(text, schema)


def _check_no_duplicates(text: str, tree: Any) -> None:
    """Refuses duplicates in lists, which graphql-core finds at quadratic cost. Raises: InvalidDocument."""
    seen: set[tuple[str, str, str]] = set()
    for definition in tree.definitions:
        for key in ("types", "interfaces"):
            for node in getattr(definition, key, None) or ():
                entry = key, definition.name.value, node.name.value
                if entry in seen:
                    raise InvalidDocument(f"{entry[1]} lists {entry[2]} twice", _node_location(text, node))
                seen.add(entry)


def _check_edition(edition: str, text: str, tree: Node) -> None:
    """Refuses features of editions after the declared one. Raises: InvalidDocument."""
    edition_index = _EDITIONS.index(edition) if edition in _EDITIONS else len(_EDITIONS) - 1
    own_directives = {node.name.value for node in _walk(tree) if node.kind == "directive_definition"}
    for node in _walk(tree):
        for first_edition, feature in _newer_features(node, own_directives):
            if first_edition > edition_index:
                later_edition = _EDITIONS[first_edition] if first_edition < len(_EDITIONS) else "no edition yet"
                raise InvalidDocument(
                    f"{feature} is not in the edition {_EDITIONS[edition_index]}; it is in {later_edition}",
                    _node_location(text, node),
                )


def _newer_features(node: Any, own_directives: set[str]) -> Iterator[tuple[int, str]]:
    """Features of a node that the first edition lacks, with their edition.

    own_directives: directives defined in the document.
    """
    match node.kind:
        case "interface_type_definition" | "interface_type_extension" if node.interfaces:
            yield 1, "an interface that implements others"
        case "schema_definition" if node.description is not None:
            yield 1, "a description of the schema"
        case "directive_definition":
            if node.repeatable:
                yield 1, "a repeatable directive"
            if any(location.value == "VARIABLE_DEFINITION" for location in node.locations):
                yield 1, "a directive on variables"
            if getattr(node, "directives", None):
                yield 3, "a directive on a directive"
        case "directive_extension":
            yield 3, "an extension of a directive"
        case "directive" if node.name.value not in own_directives:
            if node.name.value == "specifiedBy":
                yield 1, "@specifiedBy"
            elif node.name.value == "oneOf":
                yield 2, "@oneOf"
        case "input_value_definition" if "deprecated" not in own_directives:
            if any(directive.name.value == "deprecated" for directive in node.directives or ()):
                yield 2, "a deprecated argument or input field"


def _walk(tree: Node) -> Iterator[Any]:
    pending: list[Any] = [tree]
    while pending:
        node = pending.pop()
        if isinstance(node, Node):
            yield node
            pending.extend(getattr(node, key, None) for key in reversed(node.keys) if key != "loc")
        elif isinstance(node, list | tuple):
            pending.extend(reversed(node))


def _normal_form(node: Any) -> Any:
    """The syntax tree without parts that have no meaning, in a fixed order."""
    if isinstance(node, list | tuple):
        return tuple(map(_normal_form, node))
    if not isinstance(node, Node):
        return node
    members = {key: _normal_form(getattr(node, key, None)) for key in node.keys if key != "loc"}
    if "description" in members:
        members["description"] = None
    if node.kind == "string_value":
        members["block"] = False
    for key, value in members.items():
        if isinstance(value, tuple) and (key in _UNORDERED_KEYS or (key == "values" and node.kind.startswith("enum"))):
            members[key] = tuple(sorted(value, key=_sort_key))
    return node.__class__(**members)


def _sort_key(node: Any) -> tuple[str, str]:
    has_name = "extension" not in node.kind and hasattr(node, "name")
    return node.kind, node.name.value if has_name else print_ast(node)


# -- places -----------------------------------------------------------------------------------------------------------


def _node_location(text: str, node: Any) -> DocumentLocation | None:
    """The location of a definition, without its description."""
    if node is None or node.loc is None:
        return None
    start = node.loc.start
    if getattr(node, "description", None) is not None and node.description.loc is not None:
        start = node.description.loc.end
    start += len(text[start:]) - len(text[start:].lstrip()) if text[start : start + 1].isspace() else 0
    return _location_at(text, start)


def _location_at(text: str, start: int) -> DocumentLocation:
    line_text = text[start : start + MAX_FRAGMENT].strip()
    return DocumentLocation(line=text.count("\n", 0, start) + 1, fragment=line_text.partition("\n")[0])


def _error_location(text: str, error: GraphQLError) -> DocumentLocation | None:
    if error.nodes:
        return _node_location(text, error.nodes[-1])
    for position in error.positions or ():
        location = _location_at(text, max(position - MAX_FRAGMENT // 4, text.rfind("\n", 0, position) + 1))
        return DocumentLocation(line=text.count("\n", 0, position) + 1, fragment=location.fragment)
    return DocumentLocation(line=1)


def _change_subjects(description: str, is_last_first: bool) -> Iterator[str]:
    """The subjects of a change, taken from graphql-core's description, the most specific name first."""
    names = [coordinate[0] for coordinate in _COORDINATE.finditer(description)]
    names = names[::-1] if is_last_first else names
    for name in sorted(names, key=lambda name: not (set(name) & set(".@("))):
        yield name
        if "(" in name:
            yield name.partition("(")[0]
        if "." in name:
            yield name.partition(".")[0]


def _first_location(document: GraphqlDocument, *names: str) -> DocumentLocation | None:
    for name in names:
        if (node := _find_node(document.schema, name)) is not None:
            return _node_location(document.text, node)
    return None


def _find_node(schema: GraphQLSchema, name: str) -> Any:
    """The syntax node of a coordinate; None where nothing has that name."""
    path, _, argument = name.partition("(")
    if path.startswith("@"):
        definition: Any = schema.get_directive(path[1:])
    else:
        owner, _, member = path.partition(".")
        definition = schema.type_map.get(owner)
        if member and definition is not None:
            definition = (getattr(definition, "fields", None) or getattr(definition, "values", None) or {}).get(member)
    if argument and definition is not None:
        definition = getattr(definition, "args", {}).get(argument.rstrip(":)"))
    return getattr(definition, "ast_node", None)
