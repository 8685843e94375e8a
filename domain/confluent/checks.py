"""Checks of schemas that decisions and answers need, run where documents are checked: in bounded processes.

Their results depend on bytes only, like those of `domain/decisions/checks`, which runs them with its own.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple

from annals.domain.confluent.compatibility.difference import Difference
from annals.domain.confluent.content import ContentIdentity, content_identity
from annals.domain.confluent.schema_types import AVRO, PROTOBUF
from annals.domain.confluent.texts.contract import schema_texts
from annals.domain.formats.contract import MAX_FRAGMENT, DocumentLocation, Incompatibility
from annals.domain.values.json_text import dumps, loads

#: Returns the bytes of a document by its SHA-256.
LoadBytes = Callable[[str], bytes]
#: The `rule` of the result of a check that computes something; its text is JSON.
CONTENT_RULE: Final = "content"
TEXT_RULE: Final = "text"
_TEXT_SOURCE: Final = "utf-8-sig"


class SchemaDocument(NamedTuple):
    """A schema. references: the name and the SHA-256 of each text that it uses, after those that this one uses."""

    type: str
    sha256: str
    references: tuple[tuple[str, str], ...] = ()

    def parse(self, load: LoadBytes) -> Any:
        """The parsed schema. Raises: InvalidDocument."""
        return self.parse_text(load(self.sha256), load)

    def parse_text(self, text: bytes, load: LoadBytes) -> Any:
        """Another text with the same references, parsed. Raises: InvalidDocument."""
        references = tuple((name, load(sha256)) for name, sha256 in self.references)
        size = len(text) + sum(len(referenced) for _, referenced in references)
        return _parser(self.type, size)(self.type, text, references)

    @property
    def documents(self) -> tuple[str, ...]:
        """The SHA-256 of each document."""
        return self.sha256, *(sha256 for _, sha256 in self.references)


def _parse(type: str, text: bytes, references: tuple[tuple[str, bytes], ...]) -> Any:
    return schema_texts(type).parse(text, dict(references))


#: A schema is compared with each version of a subject, so the last ones are kept; of small ones the versions as well,
#: which are compared with each new schema. Parsed Protobuf takes hundreds of kilobytes, with the files that it imports.
_parse_recent: Final = lru_cache(maxsize=8)(_parse)
_parse_small: Final = lru_cache(maxsize=512)(_parse)
#: The number of bytes of a text and its references up to which a schema is small, and up to which it is kept at all.
_MAX_SMALL: Final = 2048
_MAX_KEPT: Final = 65_536


def _parser(type: str, size: int) -> Callable[[str, bytes, tuple[tuple[str, bytes], ...]], Any]:
    if size > _MAX_KEPT:
        return _parse
    return _parse_small if size <= _MAX_SMALL and type != PROTOBUF else _parse_recent


class ContentCheck(NamedTuple):
    """Is this a schema, and which content is it? extras: `references`, `metadata` and `ruleSet` as JSON.

    normalizes: the content is that of its normalized text.
    """

    schema: SchemaDocument
    extras: str = "{}"
    normalizes: bool = False

    @property
    def schemas(self) -> tuple[SchemaDocument, ...]:
        return (self.schema,)

    def run(self, load: LoadBytes) -> tuple[Incompatibility, ...]:
        """A result that `read_content` reads. Raises: InvalidDocument."""
        texts, parsed = schema_texts(self.schema.type), self.schema.parse(load)
        sent = load(self.schema.sha256).decode(_TEXT_SOURCE, "replace")
        stored = texts.normalized_text(parsed) if self.normalizes else texts.stored_text(parsed, sent)
        if self.normalizes:  # the content of a stored text does not depend on how it came about
            parsed = self.schema.parse_text(stored.encode(), load)
        identity = content_identity(self.schema.type, texts.canonical_text(parsed), loads(self.extras))
        members = {**identity._asdict(), "format": texts.declared_format(parsed), "violation": texts.violation(parsed)}
        return (Incompatibility(CONTENT_RULE, dumps(members | ({} if stored == sent else {"text": stored})).decode()),)


class SchemaContent(NamedTuple):
    """What a ContentCheck finds.

    declared_format: of xRegistry, with the release that the text declares; None if it declares none. text: to be
    stored, None for the text as it was sent. violation: why a new schema may not have this text; None if it may.
    """

    identity: ContentIdentity
    declared_format: str | None
    text: str | None
    violation: str | None = None


class SchemaComparison(NamedTuple):
    """Can data of one schema be read with another, by the rules of Confluent's registry?"""

    reader: SchemaDocument
    writer: SchemaDocument
    is_lenient: bool = False

    @property
    def schemas(self) -> tuple[SchemaDocument, ...]:
        return self.reader, self.writer

    def run(self, load: LoadBytes) -> tuple[Incompatibility, ...]:
        """The differences. Raises: InvalidDocument."""
        if self.reader.type != self.writer.type:
            info = f"{self.writer.type} -> {self.reader.type}"
            return _results([Difference("TYPE_CHANGED", "/", "The type of the {reader} schema is another one", info)])
        texts = schema_texts(self.reader.type)
        return _results(texts.differences(self.reader.parse(load), self.writer.parse(load), self.is_lenient))


class SameTextCheck(NamedTuple):
    """Have two schemas the same text, also where the new one has no references and the old one's are put in (CSR-509)?

    normalizes: their normalized texts are compared. It is the first field because checks are keys of one cache, where
    tuples with equal values are the same key.
    """

    normalizes: bool
    new: SchemaDocument
    old: SchemaDocument

    @property
    def schemas(self) -> tuple[SchemaDocument, ...]:
        return self.new, self.old

    def run(self, load: LoadBytes) -> tuple[Incompatibility, ...]:
        """Empty if they have. Raises: InvalidDocument."""
        texts = schema_texts(self.new.type)
        print_text = texts.normalized_text if self.normalizes else texts.canonical_text
        new_text, old = print_text(self.new.parse(load)), self.old.parse(load)
        is_same = new_text == print_text(old)
        if not is_same and self.old.references and not self.new.references:
            resolved = texts.resolved(old)
            is_same = resolved is not None and new_text == print_text(resolved)
        return () if is_same else (Incompatibility(TEXT_RULE, "the texts differ"),)


class FormattedText(NamedTuple):
    """The text of a schema in a form that a reader asks for."""

    schema: SchemaDocument
    format: str

    @property
    def schemas(self) -> tuple[SchemaDocument, ...]:
        return (self.schema,)

    def run(self, load: LoadBytes) -> tuple[Incompatibility, ...]:
        """A result that `read_text` reads; an empty one for a form that the type does not have."""
        text = schema_texts(self.schema.type).formatted_text(self.schema.parse(load), self.format)
        return () if text is None else (Incompatibility(TEXT_RULE, text),)


SchemaCheck = ContentCheck | SchemaComparison | SameTextCheck | FormattedText


def content_check(document: SchemaDocument, extras: Mapping[str, Any], *, normalizes: bool = False) -> ContentCheck:
    """The check that finds the content of a document. extras: its references, metadata and rule set, as facts."""
    return ContentCheck(document, dumps(extras).decode(), normalizes)


def is_cheap(check: SchemaCheck) -> bool:
    """Whether a check of small texts costs no more than a request to a process."""
    types = {schema.type for schema in check.schemas}
    return PROTOBUF not in types and (types == {AVRO} or not isinstance(check, SchemaComparison | SameTextCheck))


def documents_of(check: SchemaCheck) -> tuple[str, ...]:
    """The SHA-256 of each document that a check is about."""
    return tuple(dict.fromkeys(sha256 for schema in check.schemas for sha256 in schema.documents))


def read_content(result: Sequence[Incompatibility]) -> SchemaContent | None:
    """The content in the result of a ContentCheck; None if the text is no schema."""
    if not result or result[0].rule != CONTENT_RULE:
        return None
    members: Mapping[str, Any] = json.loads(result[0].text)
    identity = ContentIdentity(members["key"], members["guid"])
    return SchemaContent(identity, members["format"], members.get("text"), members.get("violation"))


def content_keys(results: Mapping[Any, Sequence[Incompatibility]]) -> set[str]:
    """The keys of all contents among the results of checks."""
    contents = (read_content(result) for check, result in results.items() if isinstance(check, ContentCheck))
    return {content.identity.key for content in contents if content is not None}


def read_text(result: Sequence[Incompatibility]) -> str | None:
    """The text in the result of a FormattedText; None if there is none."""
    return result[0].text if result and result[0].rule == TEXT_RULE else None


def read_differences(result: Sequence[Incompatibility]) -> list[Difference]:
    """The differences in the result of a SchemaComparison."""
    return [
        Difference(one.rule, (one.reader.pointer if one.reader else None) or "", one.text, _info(one)) for one in result
    ]


def _results(differences: Sequence[Difference]) -> tuple[Incompatibility, ...]:
    return tuple(
        Incompatibility(
            difference.type, difference.text, DocumentLocation(difference.path, fragment=difference.info[:MAX_FRAGMENT])
        )
        for difference in differences[:_MAX_DIFFERENCES]
    )


#: The maximum number of differences that are reported.
_MAX_DIFFERENCES: Final = 50


def _info(incompatibility: Incompatibility) -> str:
    return (incompatibility.reader.fragment if incompatibility.reader else None) or ""
