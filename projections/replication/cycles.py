"""The registries that this one follows, and whether a link closes a cycle of registries."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from domain.errors.http_errors import InvalidLink
from domain.replication.cycles import cycle_text, describe_link, find_path, parse_hops
from domain.replication.link import LOG, PUSH, Link
from projections.entities.query import View
from projections.replication.link_state import LinkStates
from projections.replication.link_worker import LinkWorkerContext
from projections.replication.remote.remote_client import RemoteClient, RemoteError

#: The name of the link's fact that holds the other registry's answer.
UPSTREAM_FACT: Final = "upstream"
UPSTREAM_PATH: Final = "/-/log/upstream"
#: Time limit for that answer in seconds while a client waits for the creation of a link.
_PROMPT: Final = 5.0


def upstream_registries(view: View, states: LinkStates) -> dict[str, Any]:
    """The id of this registry, and the registries whose logs it follows, directly or through others."""
    registry = view.log.interactions(0, 1)[0].xregcorrelationid
    links = [link for link in view.links.all() if link.follows_log and not link.promoted]
    follows = (describe_link(link, registry, states.read(link.id).status.get(UPSTREAM_FACT) or {}) for link in links)
    return {"registry": registry, "follows": list(follows)}


def check_cycle(link: Link, tools: LinkWorkerContext, remote: RemoteClient, **options: Any) -> None:
    """Asks the other registry which registries it follows, and stores the answer. Does nothing if it does not say.

    options: of the request.
    Raises: InvalidLink if the link closes a cycle, RemoteError if the registry does not answer.
    """
    if link.dialect != LOG:
        return
    try:
        said = remote.request("GET", UPSTREAM_PATH, **options).json()
    except RemoteError as error:
        if error.status is None:
            raise
        return
    except ValueError:
        return
    if not isinstance(said, dict) or not isinstance(said.get("registry"), str):
        return
    tools.states.update(
        link.id, None, **{UPSTREAM_FACT: {"registry": said["registry"], "follows": said.get("follows")}}
    )
    own = upstream_registries(tools.readers.quick_view(), tools.states)
    if found := _outbound_cycle(link, own, said) if link.mode == PUSH else _inbound_cycle(link, tools, own, said):
        reason = f"{found}, so no registry of this ring could be written to; remove or promote one of these links"
        raise InvalidLink.at("ring", "/url", reason)


def check_cycle_promptly(link: Link, tools: LinkWorkerContext, remote: RemoteClient) -> None:
    """`check_cycle` while a client waits. Does nothing if the other registry does not answer. Raises: InvalidLink."""
    with suppress(RemoteError):
        check_cycle(link, tools, remote, within=_PROMPT)


def _inbound_cycle(link: Link, tools: LinkWorkerContext, own: Mapping[str, Any], said: Mapping[str, Any]) -> str:
    """How the registry that a link pulls from follows this one; empty if it does not."""
    found = find_path(parse_hops(said.get("follows")), own["registry"], tools.public_url, link.attributes["scope"])
    return f"the link {link.id} follows {cycle_text(link.url, found)}" if found else ""


def _outbound_cycle(link: Link, own: Mapping[str, Any], said: Mapping[str, Any]) -> str:
    """How this registry follows the one that a link pushes to, within the scope of the receiving link; empty if not."""
    taking = next((hop for hop in parse_hops(said.get("follows")) if hop.link == link.remote), None)
    found = find_path(parse_hops(own["follows"]), said["registry"], link.url, taking.scope) if taking else ()
    return (
        f"the link {link.id} pushes to {link.url}, and this registry {cycle_text('', found).strip()}" if found else ""
    )
