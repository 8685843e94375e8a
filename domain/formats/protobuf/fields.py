"""The fields of a Protobuf document."""

from __future__ import annotations

from collections.abc import Iterator

from annals.domain.formats.fields import SchemaField
from annals.domain.formats.protobuf.model import ProtoDocument, ProtoField


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
            yield SchemaField(
                f"{name}.{field.name}", field.name, _label(parsed, field), optional, _comment(parsed.lines, field.line)
            )


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
