"""Logs with documents, the rows that segments must contain, and the files in a folder."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from sqlalchemy import Engine, select

from annals.commands.store.compression.document_compression import decompress_document
from annals.commands.store.compression.state_compression import decompress_state
from annals.commands.store.database import tables
from annals.projections.log.table_rows import LogTableRow
from tests.support.registries.recorded import Registry

#: Text that is easily corrupted: characters beyond ASCII and the Basic Plane, quotes, a NUL, line ends.
AWKWARD = 'Zähler \U0001f4a7 "quoted" \\ \u2028 \0 \r\n'


def record_interactions(registry: Registry, interactions: int, start: int = 0) -> None:
    """Records interactions of 1 to 4 events; every second has one of five documents, which therefore repeat."""
    for n in range(start, start + interactions):
        group = f"/dirs/d{n}"
        rest = [(f"{group}/files/f{file}", {"name": f"{AWKWARD}{file}"}) for file in range(n % 4)]
        if n % 2:
            registry.record((group, {"n": n}), *rest)
            continue
        content = f"document {n % 10} {AWKWARD}".encode()
        digest = sha256(content).hexdigest()
        registry.record((group, {"n": n, "doc": digest}), *rest, documents={digest: content})


def log_rows(engine: Engine) -> list[LogTableRow]:
    """The rows of the log as the database stores and joins them."""
    log, of = tables.log.c, tables.interaction.c
    facts = (
        of.first,
        of.last,
        of.xregcorrelationid,
        of.time,
        of.caller,
        of.command,
        of.registry_url,
        of.chain,
        of.state,
        of.salt,
        of.authenticator,
        of.keyid,
    )
    joined = select(log.position, log.stream, log.revision, log.topic, log.state, *facts).where(
        log.position >= of.first, log.position <= of.last
    )
    with engine.connect() as connection:
        found = connection.execute(joined.order_by(log.position)).all()
    return [
        LogTableRow._make(
            (*row[:4], decompress_state(row[4]).decode(), *row[5:-5], bytes(row[-5]), bytes(row[-4]), *row[-3:])
        )
        for row in found
    ]


def stored_documents(engine: Engine) -> dict[str, bytes]:
    """Every document of the database."""
    with engine.connect() as connection:
        rows = connection.execute(select(tables.document))
        return {digest: decompress_document(digest, stored) for digest, stored in rows}


def files_below(folder: Path) -> dict[str, bytes]:
    """Every file below a folder, by its path from there."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
