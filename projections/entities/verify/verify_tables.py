"""Verifies that the read model has the tables of this program, without which nothing else of it can be verified."""

from __future__ import annotations

from collections.abc import Iterator

from annals.commands.store.log import Store
from annals.commands.verify.verify_log import VerificationFinding
from annals.projections.entities.tables import tables


def verify_tables(store: Store) -> Iterator[VerificationFinding]:
    """A finding if the read model is missing, or of another program, as in a store that is not upgraded yet."""
    with store.engine.connect() as connection:
        if not tables().exist(connection):
            yield VerificationFinding(store.log_end().position, "the read model is missing, or of another program")
