"""The query parameters of `/-/check`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from annals.api.http.query_params import invalid_param, query_params, single_value
from annals.api.http.request import Request

_PARAMETERS: Final = ("format", "compatibility", "against", "version")
#: Values of `against` that are not ids: whether all ancestors count.
_ANCESTOR_CHOICES: Final = {"all": True, "latest": False}


@dataclass(frozen=True, slots=True)
class CheckParams:
    """What a client wants to know about a document.

    format: of the document; None or empty for that of the default Version. rule: None or empty for
    `meta.compatibility`. all_ancestors: whether it is compared with all ancestors or with the nearest; None for what
    the rule requires. versionids: the Versions that it is compared with instead; empty for ancestors. replaced: the id
    of the Version whose document it replaces; None for a new Version.
    """

    format: str | None = None
    rule: str | None = None
    all_ancestors: bool | None = None
    versionids: Sequence[str] = ()
    replaced: str | None = None


def parse_check_params(request: Request) -> CheckParams:
    """The parameters of a request. Raises: BadRequest, also for both `against` and `version`."""
    parameters = query_params(request, _PARAMETERS)
    format, rule, against, replaced = (single_value(parameters, name) for name in _PARAMETERS)
    if against is not None and replaced is not None:
        raise invalid_param("against", 'it cannot be combined with "version"')
    versionids = against.split(",") if against and against not in _ANCESTOR_CHOICES else ()
    return CheckParams(
        format,
        rule,
        _ANCESTOR_CHOICES.get(against or ""),
        tuple(versionid.strip() for versionid in versionids),
        replaced,
    )
