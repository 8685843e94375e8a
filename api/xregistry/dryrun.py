"""Dry runs: the events that a write would append, in the format of `/-/log` (FLAG-83).

The lines are read back from the log inside the savepoint, before it is rolled back, so they equal what a reader of the
log would receive. A dry run uses no correlation id: the lines have an empty one, and the chain hash is computed with
it.
"""

from __future__ import annotations

import asyncio
from typing import Final

from annals.api.feeds.formats import LOG_FORMATS, FeedFormat, negotiate_format
from annals.api.feeds.rights import visible_streams
from annals.api.feeds.sources import LogFeedSource
from annals.api.http.problem_response import root_link
from annals.api.http.request import Request
from annals.api.http.response import Headers, Response
from annals.commands.command_bus import CommandBus
from annals.commands.pending_command import BuildAnswer, Precondition
from annals.commands.store.write_transaction import Recorded, WriteTransaction
from annals.domain.access.roles import Caller
from annals.domain.decisions.commands import Command
from annals.projections.entities.transaction_view import TransactionView
from annals.projections.log.answer_position import note_position

#: The number of findings, from rules beyond the model, in what a request wrote.
FINDINGS_HEADER: Final = b"annals-findings"

_PAGE_FORMATS: Final = {name: form for name, form in LOG_FORMATS.items() if not form.is_endless}


async def dry_run(
    request: Request,
    command_bus: CommandBus,
    command: Command,
    condition: Precondition | None,
    build_response: BuildAnswer | None = None,
    *,
    is_unrestricted: bool = False,
) -> Response:
    """The events that a command would append, without a correlation id, because nothing is recorded.

    build_response: builds the response of the real write, which may refuse the command too (ENT-4). is_unrestricted:
    the command is about an object that the caller owns, so the caller sees all of its events. Raises: NotAcceptable,
    Problem.
    """
    feed_format = negotiate_format(request.header(b"accept"), _PAGE_FORMATS)

    def write_lines(transaction: WriteTransaction, recorded: Recorded) -> bytes:
        if build_response is not None:
            build_response(transaction, recorded)
        return _log_lines(transaction, recorded, None if is_unrestricted else request.caller, feed_format)

    recorded = await asyncio.wrap_future(
        command_bus.submit(command, request.caller, write_lines, condition, dryrun=True)
    )
    note_position(recorded.position - len(recorded.events))
    return Response(
        200, [feed_format.content_type, root_link(request.base), *findings_headers(recorded)], recorded.answer
    )


def findings_headers(recorded: Recorded) -> Headers:
    """The header with the number of findings of a write or a dry run; empty if there are none."""
    return [(FINDINGS_HEADER, b"%d" % recorded.findings)] if recorded.findings else []


def _log_lines(
    transaction: WriteTransaction, recorded: Recorded, caller: Caller | None, feed_format: FeedFormat
) -> bytes:
    """The log lines of a command before its rollback, limited to those that its caller may read; None for all."""
    log = TransactionView(transaction).log
    may_see = visible_streams(caller) if caller else None
    source = LogFeedSource(lambda: log, may_see, is_partial=caller is not None and not caller.sees_everything)
    groups = source.groups(recorded.position - len(recorded.events), recorded.position)
    return feed_format.before + feed_format.write(groups, True) + feed_format.after
