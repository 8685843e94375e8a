"""docs/reference/formats.md: every schema format, and its verdicts on common changes, which the format itself gives."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import yaml

from annals.domain.formats import COMPATIBILITIES, FORMAT_MODULES, find_format
from annals.domain.formats.contract import Incompatibility
from docs.generate.markdown import code, page, table

_INTRODUCTION: Final = """\
The `format` of a Version names the kind of its document, in any letter case. The [guide](../guides/formats.md)
describes what is checked, how errors look, and how to test a document before a write."""
_VERDICTS: Final = """\
What the formats say about some changes. Backward: the newer document reads data of the older one. Forward: the older
one reads data of the newer one. A refused change names its rules, as `rule` of an answer does."""
_STAR_NOTE: Final = """\
`*` stands for any text. OpenAPI documents may also be YAML. Documents of all formats are compared, with these values
of `meta.compatibility`: """
_CHANGES: Final = Path(__file__).with_name("format_changes.yaml")


def text() -> str:
    """The whole page."""
    rules = ", ".join(map(code, COMPATIBILITIES))
    return page(
        "Formats and verdicts",
        _INTRODUCTION,
        table(("Values of `format`", "Documents"), _formats()),
        _STAR_NOTE + f"{rules}.",
        "## Verdicts",
        _VERDICTS,
        *_verdicts(yaml.safe_load(_CHANGES.read_text())),
    )


def _formats() -> Iterator[tuple[str, str]]:
    for each in FORMAT_MODULES:
        yield ", ".join(map(code, each.names)), "text" if each.is_text else "JSON"


def _verdicts(families: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for family in families:
        yield f"### {family['format']}"
        yield table(("Change", "Backward", "Forward"), (_row(family["format"], **row) for row in family["changes"]))


def _row(format: str, *, name: str, old: Any, new: Any) -> tuple[str, str, str]:
    module = find_format(format)
    assert module is not None
    compared = module.load()
    older, newer = (compared.parse(_document(document), format) for document in (old, new))
    backward = compared.incompatibilities(newer, older, "reader")
    forward = compared.incompatibilities(older, newer, "writer")
    return name, _verdict(backward), _verdict(forward)


def _document(document: Any) -> bytes:
    return (document if isinstance(document, str) else json.dumps(document)).encode()


def _verdict(found: Iterable[Incompatibility]) -> str:
    return ", ".join(dict.fromkeys(code(each.rule) for each in found)) or "yes"
