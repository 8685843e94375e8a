"""The interface of a type of schemas."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final, Protocol, cast

from annals.domain.confluent.compatibility.difference import Difference
from annals.domain.confluent.schema_types import AVRO, JSON, PROTOBUF


class SchemaTexts(Protocol):
    """One type: a module with these functions. They are pure, fetch nothing, and are safe for untrusted texts.

    Libraries are imported with the module, so it is loaded where texts are parsed only.
    """

    def parse(self, text: bytes, references: Mapping[str, bytes]) -> Any:
        """The parsed schema. references: the texts that it uses, by name, each after those that it uses itself.

        Raises: InvalidDocument.
        """

    def violation(self, parsed: Any) -> str | None:
        """Why a new schema may not have the text, while one that another registry has stored may; None if it may."""

    def canonical_text(self, parsed: Any) -> str:
        """The text by which contents are compared (CSR-415)."""

    def normalized_text(self, parsed: Any) -> str:
        """The text that `normalize` compares and stores (CSR-416)."""

    def stored_text(self, parsed: Any, sent: str) -> str:
        """The text that is stored for a sent one."""

    def resolved(self, parsed: Any) -> Any:
        """The parsed text with the texts that it refers to put in; None where there is no such form (CSR-509)."""

    def declared_format(self, parsed: Any) -> str | None:
        """The xRegistry `format` with the release that the text declares; None where it declares none (CSR-418)."""

    def formatted_text(self, parsed: Any, format: str) -> str | None:
        """The text in a form that a reader asks for; None for a form that the type does not have (CSR-420)."""

    def differences(self, reader: Any, writer: Any, is_lenient: bool) -> list[Difference]:
        """Why data of the writer cannot be read with the reader, by the rules of Confluent's registry."""


_MODULES: Final = {AVRO: "avro", JSON: "json_schema", PROTOBUF: "protobuf"}


def schema_texts(type: str) -> SchemaTexts:
    """The module of a type; imports its libraries too."""
    return cast(SchemaTexts, import_module(f"annals.domain.confluent.texts.{_MODULES[type]}"))
