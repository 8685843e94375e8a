"""The form "As of": the moment that a page shows, and where its button leads (UI-32, UI-36 to UI-38)."""

from __future__ import annotations

from typing import Final, NamedTuple
from urllib.parse import quote, unquote_plus

from annals.api.http.query_params import QueryParams, all_query_params, single_value
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.api.ui.local_times import moment_of_field
from annals.api.ui.redirect import redirect
from annals.api.ui.sign_in.local_paths import below_root
from annals.domain.errors.problems import BadRequest

POSITION: Final = "asofposition"
TIME: Final = "asoftime"
SHOWN_POSITION: Final = "shownposition"
SHOWN_TIME: Final = "showntime"
_FIELDS: Final = (POSITION, TIME, SHOWN_POSITION, SHOWN_TIME)
#: Parameters that belong to one moment: the place in a list, and the result of a write.
_MOMENT_PARAMS: Final = ("asof", "page", "after", "order", "cursor", "saved")


class AsofForm(NamedTuple):
    """What the form shows. position, time: of the moment. head: the last position of the log.

    asof: of the page; empty for the present. action: the path of the page. hidden: its other parameters. now: the URL
    of the page without `asof`.
    """

    position: int
    time: str
    head: int
    asof: str
    action: str
    hidden: list[tuple[str, str]]
    now: str

    @property
    def is_past(self) -> bool:
        """Whether the page shows a past moment."""
        return bool(self.asof)

    @property
    def field_time(self) -> str:
        """The time as the field has it: in UTC, to the second."""
        return self.time[:19]


def build_asof_form(request: Request, position: int, time: str, head: int, asof: str) -> AsofForm:
    """The form of a page. time: of the moment, in UTC."""
    path, params = below_root(request, request.raw_path), all_query_params(request)
    hidden = [(name, value) for name, values in params.items() if name not in _MOMENT_PARAMS for value in values]
    return AsofForm(position, time, head, asof, path, hidden, path + _query(request, ""))


def asof_redirect(request: Request) -> Response | None:
    """Where the button "Go" leads; None if the request is not the form's. Raises: BadRequest if both fields changed."""
    params = all_query_params(request)
    if POSITION not in params and TIME not in params:
        return None
    position, time = _changed(params, POSITION, SHOWN_POSITION), _changed(params, TIME, SHOWN_TIME)
    if position is not None and time is not None:
        raise BadRequest(error_detail="position and time have both been changed; change one of them")
    if position is None and time is None:
        asof = single_value(params, "asof") or ""
    else:
        asof = position if position is not None else moment_of_field(time or "")
    return redirect(below_root(request, request.raw_path) + _query(request, asof))


def _changed(params: QueryParams, name: str, shown_name: str) -> str | None:
    """The value of a field that differs from what was shown; None if it does not."""
    value, shown = (single_value(params, each) or "" for each in (name, shown_name))
    # Browsers leave out seconds that are zero.
    is_same = value.strip() == shown or f"{value.strip()}:00" == shown
    return None if is_same else value.strip()


def _query(request: Request, asof: str) -> str:
    """The query of the page for another moment; with the question mark, if there is any."""
    parts = [part for part in request.query.decode("latin-1").split("&") if part]
    kept = [part for part in parts if unquote_plus(part.partition("=")[0]) not in (*_FIELDS, *_MOMENT_PARAMS)]
    if asof:
        kept.append(f"asof={quote(asof, safe=':')}")
    return "?" + "&".join(kept) if kept else ""
