"""The fields of a Protobuf document."""

from __future__ import annotations

from collections.abc import Iterator

from annals.domain.formats.contract import DocumentLocation
from annals.domain.formats.fields import SchemaField
from annals.domain.formats.protobuf.model import ProtoDocument, ProtoField, ProtoMethod


def fields(parsed: ProtoDocument) -> Iterator[SchemaField]:
    """The fields of each message, as `Message.field`; `optional` means that the field has presence and may lack it.

    A message inside of a field's type is not repeated there: it has its own fields. `doc` is the comment in front of
    the field or behind it.
    """
    for message in parsed.messages.values():
        if message.is_map_entry:
            continue
        name = _local(parsed, message.name)
        for _, field in sorted(message.fields.items()):
            optional = not (field.required or field.implicit or field.repeated)
            label, doc = _label(parsed, field), _comment(parsed.lines, field.line)
            location = DocumentLocation(line=field.line)
            yield SchemaField(f"{name}.{field.name}", field.name, label, optional, doc, location)


def declarations(parsed: ProtoDocument) -> Iterator[SchemaField]:
    """What a document declares besides fields: messages, enums and their values, services and their methods.

    Of fields, their numbers, defaults and oneofs.
    """

    def declared(path: str, type: str, line: int | None) -> SchemaField:
        name, doc = path.rpartition(".")[2], _comment(parsed.lines, line)
        return SchemaField(path, name, type, False, doc, DocumentLocation(line=line))

    for message in parsed.messages.values():
        if not message.is_map_entry:
            message_path = _local(parsed, message.name)
            yield declared(message_path, "message", message.line)
            for field in message.fields.values():
                yield from _properties(f"{message_path}.{field.name}", field)
    for enum in parsed.enums.values():
        enum_path = _local(parsed, enum.name)
        yield declared(enum_path, "enum", enum.line)
        for name, number in enum.numbers.items():
            yield declared(f"{enum_path}.{name}", f"value {number}", enum.values[number].line)
    for service in parsed.services.values():
        service_path = _local(parsed, service.name)
        yield declared(service_path, "service", service.line)
        for method in service.methods.values():
            yield declared(f"{service_path}.{method.name}", _method_label(parsed, method), method.line)


def text(parsed: ProtoDocument) -> str:
    """The text of the document."""
    return "\n".join(parsed.lines)


def _properties(path: str, field: ProtoField) -> Iterator[SchemaField]:
    for name, value in (("number", str(field.number)), ("default", field.default), ("oneof", field.oneof)):
        if value:
            yield SchemaField(f"{path} {name}", name, value, False, "", DocumentLocation(line=field.line))


def _method_label(document: ProtoDocument, method: ProtoMethod) -> str:
    sides = zip(method.types, method.streams, strict=True)
    request, response = (f"{'stream ' if streams else ''}{_local(document, type)}" for type, streams in sides)
    return f"rpc ({request}) returns ({response})"


def _label(document: ProtoDocument, field: ProtoField) -> str:
    entry = document.messages.get(field.type)
    if entry is not None and entry.is_map_entry:
        key, value = (_label(document, entry.fields[number]) for number in (1, 2))
        return f"map<{key}, {value}>"
    label = f"{field.kind} {_local(document, field.type)}" if field.type else field.kind
    return f"repeated {label}" if field.repeated else label


def _local(document: ProtoDocument, name: str) -> str:
    name = name.removeprefix(".")
    return name.removeprefix(f"{document.package}.") if document.package else name


def _comment(lines: tuple[str, ...], line: int | None) -> str:
    """The `//` comment directly above a line, else the one at its end."""
    if line is None or line > len(lines):
        return ""
    above: list[str] = []
    for text in reversed(lines[: line - 1]):
        if not text.strip().startswith("//"):
            break
        above.insert(0, text.strip().lstrip("/").strip())
    if above:
        return " ".join(above)
    _, slashes, behind = lines[line - 1].partition("//")
    return behind.strip() if slashes else ""
