"""Commands with the results of the document checks that their decisions need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from annals.commands.command_bus import handle
from annals.commands.pending_command import PendingCommand
from annals.commands.store.log import Store
from annals.domain.decisions.checks.document_checks import (
    CheckResults,
    ChecksRequired,
    FormatCheck,
    parse_document,
    run_check,
)


def with_check_results(store: Store, batch: Sequence[PendingCommand]) -> list[PendingCommand]:
    """The commands with the check results that each needs if it is decided first. Nothing is recorded."""
    results: CheckResults = {}
    while True:
        batch = [replace(pending, check_results=results) for pending in batch]
        outcomes = handle([replace(pending, dryrun=True) for pending in batch], store, [])
        required = [outcome for outcome in outcomes if isinstance(outcome, ChecksRequired)]
        if not required:
            return list(batch)
        results = dict(results)
        for each in required:
            results |= run_checks(each)


def run_checks(required: ChecksRequired) -> CheckResults:
    """Runs checks of documents that are not stored yet."""

    def parse(document: FormatCheck) -> object:
        return parse_document(document, required.documents[document.sha256 or ""])

    return {check: run_check(check, parse) for check in required.checks}
