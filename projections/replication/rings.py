"""Which registries this one follows, and whether a link closes a ring of registries that follow one another."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

from domain.links.link import LOG, PUSH, Link
from domain.links.rings import described, hops, sentence, way
from domain.refusals import InvalidLink
from projections.entities.query import View
from projections.replication.remote import Remote, RemoteError
from projections.replication.runner import Tools
from projections.replication.states import States

#: The fact that says what the other registry of a link has answered.
UPSTREAM: Final = "upstream"
PATH: Final = "/-/log/upstream"
#: Seconds to wait for that answer where somebody waits for a link to be made.
_PROMPT: Final = 5.0


def upstream(view: View, states: States) -> dict[str, Any]:
    """Which registry this is, and which ones it follows by their logs, directly or over others."""
    registry = view.log.interactions(0, 1)[0].xregcorrelationid
    links = [link for link in view.links.all() if link.follows_log and not link.promoted]
    follows = (described(link, registry, states.read(link.id).facts.get(UPSTREAM) or {}) for link in links)
    return {"registry": registry, "follows": list(follows)}


def check_ring(link: Link, tools: Tools, remote: Remote, **options: Any) -> None:
    """Asks the other registry which ones it follows, and keeps the answer; nothing where it does not say.

    options: of the request. Raises: InvalidLink where the link closes a ring, RemoteError where nobody answers.
    """
    if link.dialect != LOG:
        return
    try:
        said = remote.ask("GET", PATH, **options).json()
    except RemoteError as error:
        if error.status is None:
            raise
        return
    except ValueError:
        return
    if not isinstance(said, dict) or not isinstance(said.get("registry"), str):
        return
    tools.states.note(link.id, None, **{UPSTREAM: {"registry": said["registry"], "follows": said.get("follows")}})
    own = upstream(tools.readers.quick(), tools.states)
    if found := _outward(link, own, said) if link.mode == PUSH else _inward(link, tools, own, said):
        reason = f"{found}, so no registry of this ring could be written to; remove or promote one of these links"
        raise InvalidLink.at("ring", "/url", reason)


def check_ring_at_once(link: Link, tools: Tools, remote: Remote) -> None:
    """`check_ring` for somebody who waits; nothing where the other registry does not answer. Raises: InvalidLink."""
    with suppress(RemoteError):
        check_ring(link, tools, remote, within=_PROMPT)


def _inward(link: Link, tools: Tools, own: Mapping[str, Any], said: Mapping[str, Any]) -> str:
    """How the registry that a link follows follows this one; empty where it does not."""
    found = way(hops(said.get("follows")), own["registry"], tools.public_url, link.attributes["scope"])
    return f"the link {link.id} follows {sentence(link.url, found)}" if found else ""


def _outward(link: Link, own: Mapping[str, Any], said: Mapping[str, Any]) -> str:
    """How this registry follows the one that a link pushes to, in the scope of the link there that takes it in."""
    taking = next((hop for hop in hops(said.get("follows")) if hop.link == link.remote), None)
    found = way(hops(own["follows"]), said["registry"], link.url, taking.scope) if taking else ()
    return f"the link {link.id} pushes to {link.url}, and this registry {sentence('', found).strip()}" if found else ""
