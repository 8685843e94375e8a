"""`/-/links` as the console asks it, and the links that `ANNALS_LINKS` asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any

from api.callers import Everybody
from api.console.opening import opened
from api.console.surfaces import Console
from api.links.declared import declared
from api.links.parts import Parts
from api.links.wiring import Idle, tools_of
from api.routes.links import Links
from api.settings import Settings
from domain.links.link import COLLECTION
from domain.problems import NotFound
from domain.refusals import InvalidLink
from domain.roles import CONSOLE
from projections.replication.states import States


@contextmanager
def links_of(settings: Settings) -> Iterator[Console]:
    """The surface of links over a store, asked by an administrator. Raises: StoreFault."""
    with opened(settings) as registry, closing(States(settings.database)) as states:
        parts = Parts(registry, Idle(states, tools_of(settings, registry, states)))
        yield Console(Links(parts, Everybody(CONSOLE)))


def ensure_links(settings: Settings) -> None:
    """Has the links be there that the settings ask for, as they are described there. Others stay.

    What was done with one since stays as well: one that is paused is not resumed, a promoted one is left alone.
    Raises: InvalidLink, where one would become what no link becomes; StoreFault.
    """
    wanted = declared(settings.links) if settings.links else {}
    if not wanted:
        return
    with links_of(settings) as console:
        for id, document in wanted.items():
            _ensure(console, id, document)


def _ensure(console: Console, id: str, document: Mapping[str, Any]) -> None:
    link = _found(console, id)
    if link is not None and link["status"]["state"] == "promoted":
        return
    kept = {"enabled": link["enabled"]} if link is not None else {}
    try:
        console.ask("PUT", f"{COLLECTION}/{id}", {**kept, **document})
    except InvalidLink:
        if link is not None or _found(console, id) is None:
            raise
        _ensure(console, id, document)  # another process of the same store has made it meanwhile


def _found(console: Console, id: str) -> dict[str, Any] | None:
    with suppress(NotFound):
        link: dict[str, Any] = console.ask("GET", f"{COLLECTION}/{id}")
        return link
    return None
