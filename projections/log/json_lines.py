"""The log as JSON lines, used by its feeds and pushes."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple

from annals.commands.store.hashes import Interaction, LogRow
from annals.domain.values.json_text import dumps
from annals.projections.log.documents import referenced_document

#: The kind of the line before the events of an interaction.
INTERACTION: Final = "interaction"
#: The kind of the line before the first event of an interaction that refers to a document.
DOCUMENT: Final = "document"
#: The number of an interaction's documents that are remembered as sent. An import that refers to a document again after
#: this number of others sends it again, and needs no more memory than any other.
MAX_SENT_DOCUMENTS: Final = 1 << 16

_INTERACTION_MEMBERS: Final = {
    **{name: name for name in ("first", "last", "xregcorrelationid", "time", "caller", "command")},
    "registryurl": "registry_url",
}

#: Returns the bytes of a document by its hash; None if they are lost.
FindDocument = Callable[[str], bytes | None]


class LogLine(NamedTuple):
    """One line. name: its kind. data: JSON, without a line end."""

    name: str
    data: bytes


def log_lines(
    interaction: Interaction, rows: Iterable[LogRow], find_document: FindDocument | None, *, with_hashes: bool = True
) -> Iterator[tuple[int, tuple[LogLine, ...]]]:
    """The position of each event with its lines: the event, and the lines that must precede it.

    rows: events of the interaction. find_document: None to leave out documents. A lost document is skipped, which its
    reader then detects. with_hashes: whether the reader sees all that the hashes cover.
    """
    preceding_lines: tuple[LogLine, ...] = (LogLine(INTERACTION, interaction_line(interaction, with_hashes)),)
    sent_hashes: dict[str, None] = {}
    for row in rows:
        document_lines = _document_lines(row, sent_hashes, find_document) if find_document is not None else ()
        yield row.position, (*preceding_lines, *document_lines, LogLine(row.topic, event_line(row)))
        preceding_lines = ()


def _document_lines(row: LogRow, sent_hashes: dict[str, None], find_document: FindDocument) -> Iterator[LogLine]:
    """The document that an event refers to, unless it was already sent."""
    sha256 = referenced_document(row)
    if sha256 is None or sha256 in sent_hashes:
        return
    if len(sent_hashes) >= MAX_SENT_DOCUMENTS:
        del sent_hashes[next(iter(sent_hashes))]
    sent_hashes[sha256] = None
    content = find_document(sha256)
    if content is not None:
        yield LogLine(DOCUMENT, document_line(sha256, content))


def document_line(sha256: str, content: bytes) -> bytes:
    """A document as JSON: its hash, by which events refer to it, and its bytes."""
    return b'{"document":"%b","base64":"%b"}' % (sha256.encode(), b64encode(content))


def interaction_line(interaction: Interaction, with_hashes: bool = True) -> bytes:
    """An interaction as JSON: its columns under the API's names, the correlation id unfolded, and hashes in hex."""
    members = {member_name: getattr(interaction, name) for member_name, name in _INTERACTION_MEMBERS.items()}
    members |= interaction.credential
    if not with_hashes:
        return dumps(members)
    salt = {"salt": interaction.salt} if interaction.salt else {}
    return dumps(members | {"chain": interaction.chain.hex(), "state": interaction.state.hex()} | salt)


def event_line(row: LogRow) -> bytes:
    """A stored event as JSON: its position, stream, revision and topic, then its stored state, byte for byte."""
    template = b'{"position":%d,"stream":%b,"revision":%d,"topic":%b,%b'
    return template % (row.position, dumps(row.stream), row.revision, dumps(row.topic), row.state[1:])
