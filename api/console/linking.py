"""`/-/links` as the console asks it, and the links that `ANNALS_LINKS` asks for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager

from api.callers import Everybody
from api.console.opening import opened
from api.console.surfaces import Console
from api.links.declared import declared
from api.links.parts import Parts
from api.links.wiring import Idle, tools_of
from api.routes.links import Links
from api.settings import Settings
from domain.links.link import COLLECTION
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
        there = {link["id"]: link for link in console.ask("GET", COLLECTION)}
        for id, document in wanted.items():
            link = there.get(id)
            if link is None or link["status"]["state"] != "promoted":
                kept = {"enabled": link["enabled"]} if link else {}
                console.ask("PUT", f"{COLLECTION}/{id}", {**kept, **document})
