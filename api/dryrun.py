"""Dry runs: what a write would append, in the form of `/-/log` (FLAG-83).

The lines are read back from the log inside the savepoint, before it is undone: they are what a reader of the log would
be given. As no correlation id is used up, theirs is empty, and the chain hash is that of an interaction with this id.
"""

from __future__ import annotations

from typing import Final

from api.answer import Answer
from api.feeds.forms import FORMS_OF_LOG, Form, choose
from api.feeds.rights import Sees, is_public, streams_of
from api.feeds.sources import LogSource
from api.problem import root_link
from api.request import Request
from commands.log import Recorded, Writing
from domain.roles import Caller
from projections.entities.query import View

_FORMS: Final = {name: form for name, form in FORMS_OF_LOG.items() if not form.endless}


def dry_form(request: Request) -> Form:
    """The form in which a client wants the events. Raises: NotAcceptable."""
    return choose(request.header(b"accept"), _FORMS)


def dry_lines(transaction: Writing, recorded: Recorded, caller: Caller, form: Form) -> bytes:
    """The events of a command that is about to be undone, as far as its caller may see them."""
    log = View.over(transaction.connection).log
    source = LogSource(lambda: log, _seen_by(caller))
    groups = source.groups(recorded.position - len(recorded.events), recorded.position)
    return form.before + form.write(groups, True) + form.after


def dry_answer(request: Request, form: Form, lines: bytes) -> Answer:
    """The answer to a dry run. It has no correlation id, because nothing was recorded."""
    return Answer(200, [form.content_type, root_link(request.base)], lines)


def _seen_by(caller: Caller) -> Sees | None:
    """A caller with roles in Groups only sees what happens in these."""
    if caller.role is not None:
        return streams_of(caller)
    return lambda stream: is_public(stream) and caller.reads(stream)
