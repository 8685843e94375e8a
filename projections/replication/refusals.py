"""Why an action of a link was refused, for its list of conflicts."""

from __future__ import annotations

from collections.abc import Callable

from annals.domain.errors.http_errors import NotReceiving
from annals.domain.errors.problems import Problem


def refusal_of(action: Callable[[], object], subject: str) -> str | None:
    """The reason why an action is refused; None if it succeeds. subject: what it is about, if the reason names none.

    Raises: NotReceiving if the link was paused, promoted or deleted, which is no conflict of anything.
    """
    try:
        action()
    except NotReceiving:
        raise
    except Problem as problem:
        return " ".join(filter(None, (problem.text(subject), problem.detail)))
    return None
