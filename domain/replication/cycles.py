"""Cycles of links: registries that follow one another's logs, so that none of them could be written to (LEG-909).

Each registry states which registries it follows, and which ones those follow, as far as it knows. A registry is
identified by the correlation id of the interaction that created it, because its clients use different URLs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from annals.domain.replication.link import Link
from annals.domain.replication.scope import LinkScope

#: The maximum number of links in a chain, and of links of one registry.
MAX_DEPTH: Final = 8
MAX_LINKS: Final = 32


@dataclass(frozen=True, slots=True)
class LinkHop:
    """A link with which a registry follows another one.

    url, registry: of the followed registry; `registry` is empty if it is unknown. link: its id. scope: its JSON form.
    followed_hops: the links of the followed registry.
    """

    url: str
    link: str
    scope: Mapping[str, Any]
    registry: str
    followed_hops: tuple[LinkHop, ...]


def describe_link(link: Link, registry: str, progress: Mapping[str, Any]) -> dict[str, Any]:
    """One of a registry's links as the registry describes it.

    progress: the description from its other end, if there is one.

    The description ends where it leads back to this registry, so the description of a cycle does not grow.
    """
    remote_members = {name: progress[name] for name in ("registry", "follows") if progress.get(name)}
    follows = [_hop_members(hop, registry) for hop in parse_hops(remote_members.pop("follows", None), MAX_DEPTH - 1)]
    hop = {"url": link.url, "link": link.id, "scope": link.attributes["scope"], **remote_members}
    return {**hop, "follows": follows} if follows else hop


def parse_hops(items: Any, max_depth: int = MAX_DEPTH) -> tuple[LinkHop, ...]:
    """The links in a response of another registry; unreadable parts are left out."""
    if not isinstance(items, list) or not max_depth:
        return ()
    return tuple(
        LinkHop(
            item["url"],
            item["link"],
            item["scope"],
            str(item.get("registry", "")),
            parse_hops(item.get("follows"), max_depth - 1),
        )
        for item in items[:MAX_LINKS]
        if isinstance(item, dict) and isinstance(item.get("scope"), dict) and _is_hop(item)
    )


def find_path(hops: Iterable[LinkHop], registry: str, url: str | None, scope: Mapping[str, Any]) -> tuple[LinkHop, ...]:
    """The chain of links with which a registry is followed, within a scope; empty if it is not followed.

    url: of that registry, for links that do not know which registry they lead to.
    """
    for hop in hops:
        if not _have_overlap(hop.scope, scope):
            continue
        if hop.registry == registry or (not hop.registry and url is not None and hop.url == url):
            return (hop,)
        if remaining_path := find_path(hop.followed_hops, registry, url, scope):
            return (hop, *remaining_path)
    return ()


def cycle_text(first: str, hops: Iterable[LinkHop]) -> str:
    """A text that describes a cycle. first: the registry that has the first of the links."""
    description = first
    for number, hop in enumerate(hops):
        description += f"{', which' if number else ''} follows {hop.url} over its link {hop.link}"
    return description


def _hop_members(hop: LinkHop, registry: str) -> dict[str, Any]:
    members: dict[str, Any] = {"url": hop.url, "link": hop.link, "scope": hop.scope}
    if hop.registry:
        members["registry"] = hop.registry
    if hop.followed_hops and hop.registry != registry:
        members["follows"] = [_hop_members(next_hop, registry) for next_hop in hop.followed_hops]
    return members


def _is_hop(item: Mapping[str, Any]) -> bool:
    return isinstance(item.get("url"), str) and isinstance(item.get("link"), str)


def _have_overlap(first: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    if first == other:
        return True
    try:
        return LinkScope.from_members(first).overlaps(LinkScope.from_members(other))
    except (ValueError, TypeError, AttributeError, LookupError):
        return False
