"""The registries that this one follows, and whether a link closes a cycle of registries."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from annals.domain.errors.http_errors import InvalidLink
from annals.domain.replication.cycles import cycle_text, describe_link, find_path, parse_hops
from annals.domain.replication.link import LOG, PUSH, Link
from annals.projections.entities.view import View
from annals.projections.replication.link_state import LinkStates
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.remote.json_answers import request_json
from annals.projections.replication.remote.remote_client import RemoteClient, RemoteError

#: The name of the link's fact that holds the other registry's answer.
UPSTREAM_KEY: Final = "upstream"
UPSTREAM_PATH: Final = "/-/log/upstream"
#: Time limit for that answer in seconds while a client waits for the creation of a link.
_PROMPT_SECONDS: Final = 5.0


def upstream_registries(view: View, states: LinkStates) -> dict[str, Any]:
    """The id of this registry, and the registries whose logs it follows, directly or through others."""
    registry_id = view.log.interactions(0, 1)[0].xregcorrelationid
    links = [link for link in view.links.all() if link.follows_log and not link.is_promoted]
    followed_logs = (
        describe_link(link, registry_id, states.read(link.id).status.get(UPSTREAM_KEY) or {}) for link in links
    )
    return {"registry": registry_id, "follows": list(followed_logs)}


def check_cycle(link: Link, context: LinkWorkerContext, remote: RemoteClient, **options: Any) -> None:
    """Asks the other registry which registries it follows, and stores the answer. Does nothing if it does not say.

    options: of the request.
    Raises: InvalidLink if the link closes a cycle, RemoteError if the registry does not answer, or not with JSON.
    """
    if link.dialect != LOG:
        return
    try:
        upstream = request_json(remote, "GET", UPSTREAM_PATH, **options)
    except RemoteError as error:
        if error.status is None or error.status < 400:
            raise
        return
    if not isinstance(upstream, dict) or not isinstance(upstream.get("registry"), str):
        return
    context.states.update(
        link.id, None, **{UPSTREAM_KEY: {"registry": upstream["registry"], "follows": upstream.get("follows")}}
    )
    own_upstream = upstream_registries(context.readers.quick_view(), context.states)
    if (
        cycle := _outbound_cycle(link, own_upstream, upstream)
        if link.mode == PUSH
        else _inbound_cycle(link, context, own_upstream, upstream)
    ):
        reason = f"{cycle}, so no registry of this ring could be written to; remove or promote one of these links"
        raise InvalidLink.at_pointer("ring", "/url", reason)


def check_cycle_promptly(link: Link, context: LinkWorkerContext, remote: RemoteClient) -> None:
    """`check_cycle` while a client waits. Does nothing if the other registry does not answer. Raises: InvalidLink."""
    with suppress(RemoteError):
        check_cycle(link, context, remote, timeout=_PROMPT_SECONDS)


def _inbound_cycle(
    link: Link, context: LinkWorkerContext, own_upstream: Mapping[str, Any], upstream: Mapping[str, Any]
) -> str:
    """How the registry that a link pulls from follows this one; empty if it does not."""
    path = find_path(
        parse_hops(upstream.get("follows")), own_upstream["registry"], context.public_url, link.attributes["scope"]
    )
    return f"the link {link.id} follows {cycle_text(link.url, path)}" if path else ""


def _outbound_cycle(link: Link, own_upstream: Mapping[str, Any], upstream: Mapping[str, Any]) -> str:
    """How this registry follows the one that a link pushes to, within the scope of the receiving link; empty if not."""
    receiving_hop = next((hop for hop in parse_hops(upstream.get("follows")) if hop.link == link.remote), None)
    path = (
        find_path(parse_hops(own_upstream["follows"]), upstream["registry"], link.url, receiving_hop.scope)
        if receiving_hop
        else ()
    )
    return f"the link {link.id} pushes to {link.url}, and this registry {cycle_text('', path).strip()}" if path else ""
