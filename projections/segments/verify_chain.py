"""Verifies that rows are an unchanged log: each follows the previous one, and the chain hashes match."""

from __future__ import annotations

from typing import NamedTuple

from annals.commands.store.hashes import EMPTY_HASH, ChainHasher, Interaction
from annals.commands.verify.verify_log import VerificationFinding
from annals.projections.log.table_rows import LogTableRow, interaction_of, log_row


class _OpenInteraction(NamedTuple):
    """The current interaction."""

    interaction: Interaction
    chain: ChainHasher


class ChainVerifier:
    """Verifies rows in order.

    position: of the last row. position, chain, statehash: of the last whole interaction. interactions: their count.
    """

    def __init__(self, position: int = 0, chain: bytes = EMPTY_HASH, statehash: bytes = EMPTY_HASH) -> None:
        self.position = self.last = position
        self.chain = chain
        self.statehash = statehash
        self.interactions = 0
        self._open: _OpenInteraction | None = None

    def check_row(self, row: LogTableRow) -> VerificationFinding | None:
        """What is wrong with the next row; the row after it is compared with the values of this one."""
        finding = self._check_order(row)
        interaction = interaction_of(row)
        open_interaction, chain = self._open = self._open or _OpenInteraction(
            interaction, ChainHasher(self.chain, interaction)
        )
        if finding is None and interaction != open_interaction:
            finding = VerificationFinding(
                row.position, "the event describes its interaction differently from the event before it"
            )
        chain.add(log_row(row))
        self.position = row.position
        end_finding = self._end_interaction(row, chain) if row.position == row.last else None
        return finding or end_finding

    def _check_order(self, row: LogTableRow) -> VerificationFinding | None:
        if row.position != self.position + 1:
            return VerificationFinding(self.position + 1, "events are missing or out of order")
        if (self._open is None) != (row.position == row.first):
            return VerificationFinding(row.position, "an interaction is not whole")
        return None

    def _end_interaction(self, row: LogTableRow, chain: ChainHasher) -> VerificationFinding | None:
        self.last, self.chain, self.statehash, self._open = row.last, row.chain, row.statehash, None
        self.interactions += 1
        if chain.digest(row.statehash) == row.chain:
            return None
        return VerificationFinding(row.first, "the chain hash differs: the interaction or its events were changed")
