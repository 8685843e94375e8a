"""Logs what keeps the start of a server busy, so that nobody takes a long upgrade for a server that hangs."""

from __future__ import annotations

import logging
from time import monotonic
from typing import Final

from annals.commands.store.database.migrations import UpgradeStep

#: Seconds between two lines about a rebuild; a shorter one is not mentioned.
LINE_SECONDS: Final = 10.0
_LOG: Final = logging.getLogger("annals.store")


def log_upgrade_step(step: UpgradeStep) -> None:
    """Logs a step before it begins."""
    _LOG.info("upgrading the store to schema %s: %s", step.schema, step.name)


class RebuildLog:
    """The ProgressCallback of a rebuild, which logs how far it is."""

    def __init__(self) -> None:
        self._next_line = monotonic() + LINE_SECONDS

    def __call__(self, done: int, total: int) -> None:
        """Takes the position that is reached and the last one."""
        if monotonic() >= self._next_line:
            self._next_line = monotonic() + LINE_SECONDS
            _LOG.info("rebuilding the read model: %d of %d events", done, total)
