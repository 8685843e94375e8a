"""Entity paths: the entity that an xid names, its parent, its stream and its place in tree order.

Spec: core 1.0-rc4, "xid Attribute"; HTTP binding 1.0-rc4, "Registry HTTP APIs".
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

#: Charset of `<SINGULAR>id` values (ENT-30).
ID: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._~:@\-]{0,127}\Z")
#: Charset of attribute and type names (ENT-10).
NAME: Final = re.compile(r"[a-z_][a-z0-9_]{0,62}\Z")

REGISTRY: Final = "/"
MODEL: Final = "/model"
CAPABILITIES: Final = "/capabilities"
#: Streams directly below the root that are not Groups, in the order of their events (EV-77).
ROOT_STREAMS: Final = (REGISTRY, MODEL, CAPABILITIES)
#: The prefixes of the streams outside the registry's tree, where no Group type can have its Groups. Subscriptions and
#: links define where events go, so they are in no response about the registry and in none of its hashes.
OUTSIDE_TREE: Final = ("/subscriptions/", "/-/")
#: The number of xids for which results stay known: each function is called many times for an entity that is written.
_CACHED_XIDS: Final = 1 << 14


@lru_cache(maxsize=_CACHED_XIDS)
def segments(xid: str) -> tuple[str, ...]:
    """`/dirs/d1/files` results in `("dirs", "d1", "files")`; the registry in `()`."""
    return tuple(xid[1:].split("/")) if xid != REGISTRY else ()


def join(*parts: str) -> str:
    """The inverse of `segments`."""
    return "/" + "/".join(parts)


def stream(xid: str) -> str:
    """The id of an entity's stream: xids that differ only in case share it, so they never exist at the same time."""
    return xid.lower()


@lru_cache(maxsize=_CACHED_XIDS)
def tree_key(xid: str) -> str:
    """A key whose byte order is the depth-first tree order: `!` sorts below every character of an id."""
    return xid.lower().replace("/", "!")


def subtree(xid: str) -> tuple[str, str]:
    """The half-open range of tree keys below an entity or collection, without the entity itself."""
    prefix = tree_key(xid) if xid != REGISTRY else ""
    return prefix + "!", prefix + '"'


def is_outside_tree(stream: str) -> bool:
    """Whether a stream is outside the registry's tree; for a collection, pass its name with a slash at the end."""
    return stream.startswith(OUTSIDE_TREE)


@lru_cache(maxsize=_CACHED_XIDS)
def type_of(xid: str) -> str:
    """`dirs`, `dirs.files` or `dirs.files.versions`; the registry, model and capabilities are their own types."""
    return xid if xid in ROOT_STREAMS else ".".join(xid.split("/")[1::2])


@lru_cache(maxsize=_CACHED_XIDS)
def parent(xid: str) -> str | None:
    """The entity that owns this one; None for the registry."""
    return xid.rsplit("/", 2)[0] or REGISTRY if xid != REGISTRY else None


def resource_of(xid: str) -> str:
    """The Resource that is or contains an entity below Groups; the entity itself if it is a Group."""
    return join(*segments(xid)[:4])


def owners(xid: str) -> list[str]:
    """The entities above an entity or a collection, without the registry, from the top."""
    parts = segments(xid)
    return [join(*parts[:length]) for length in range(2, len(parts), 2)]


def entity_id(xid: str) -> str:
    """The last segment of an entity's xid; empty for the registry."""
    return xid.rpartition("/")[2]


def event_order(xid: str) -> tuple[int, str]:
    """Sort key of an interaction's events: registry, model, capabilities, then the tree depth first (EV-77)."""
    return (ROOT_STREAMS.index(xid), "") if xid in ROOT_STREAMS else (len(ROOT_STREAMS), tree_key(xid))
