"""Requests to `/-/links` from the command line, and the links that `ANNALS_LINKS` configures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import Any

from annals.api.auth.callers import FixedCallerAuthenticator
from annals.api.cli.open_registry import open_local_registry
from annals.api.cli.surface_client import SurfaceClient
from annals.api.replication.representations import LinkApiContext
from annals.api.replication.routes import LinksRoutes
from annals.api.replication.wiring import PassiveReplication, build_link_context
from annals.api.settings.configured_links import parse_configured_links
from annals.api.settings.settings import Settings
from annals.domain.access.roles import CONSOLE
from annals.domain.errors.http_errors import InvalidLink
from annals.domain.errors.problems import NotFound
from annals.domain.replication.link import COLLECTION
from annals.projections.replication.link_state import LinkStates


@contextmanager
def open_link_client(settings: Settings) -> Iterator[SurfaceClient]:
    """A client of the `/-/links` surface over a store, as an administrator. Raises: StoreError."""
    with open_local_registry(settings) as registry, closing(LinkStates(settings.database)) as states:
        context = LinkApiContext(registry, PassiveReplication(states, build_link_context(settings, registry, states)))
        yield SurfaceClient(LinksRoutes(context, FixedCallerAuthenticator(CONSOLE)))


def ensure_configured_links(settings: Settings) -> None:
    """Creates or updates the links that the settings configure. Other links stay unchanged.

    Later actions on a link stay in force: a paused link is not resumed, and a promoted link is not changed. Raises:
    InvalidLink if the settings require a change that a link does not allow; StoreError.
    """
    configured_links = parse_configured_links(settings.links) if settings.links else {}
    if not configured_links:
        return
    with open_link_client(settings) as client:
        for id, document in configured_links.items():
            _ensure_link(client, id, document)


def _ensure_link(client: SurfaceClient, id: str, document: Mapping[str, Any]) -> None:
    link = _find_link(client, id)
    if link is not None and link["status"]["state"] == "promoted":
        return
    kept_members = {"enabled": link["enabled"]} if link is not None else {}
    try:
        client.request("PUT", COLLECTION, id, body={**kept_members, **document})
    except InvalidLink:
        if link is not None or _find_link(client, id) is None:
            raise
        _ensure_link(client, id, document)  # another process with the same store has created it meanwhile


def _find_link(client: SurfaceClient, id: str) -> dict[str, Any] | None:
    with suppress(NotFound):
        link: dict[str, Any] = client.request("GET", COLLECTION, id)
        return link
    return None
