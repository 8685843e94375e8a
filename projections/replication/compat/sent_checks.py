"""Whether the other registry still has what a link has written there (LEG-909).

A recorded path proves nothing: after the other registry was restored from a backup or replaced, it gives the same
numbers and names to other objects. So everything that was written is recognised by its identity before it is changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final

from annals.domain.values.json_text import dumps
from annals.projections.replication.compat.client import LegacyClient, LegacyVersion
from annals.projections.replication.compat.local_registry import comparable_group
from annals.projections.replication.compat.sent_objects import SentObject

#: The digest of an empty document, which records have as no digest.
_EMPTY_DIGEST: Final = sha256().hexdigest()


def find_version(client: LegacyClient, copy: SentObject) -> LegacyVersion | None:
    """The remote Version that may be a written one. Records of earlier releases have no URI, so their path counts."""
    if not copy.identity and not copy.remote_path:
        return None  # nothing says where it would be
    return client.version_at(client.lookup_path(copy.identity) if copy.identity else copy.remote_path)


def is_same_version(copy: SentObject, remote_version: LegacyVersion) -> bool:
    """Whether a Version from `find_version` is the written one.

    Its number may be another one than before. In another definition, it is what somebody else wrote.
    """
    if remote_version.content is None or sha256(remote_version.content).hexdigest() != (copy.digest or _EMPTY_DIGEST):
        return False
    is_bound = copy.is_own and copy.is_certain
    return not is_bound or definition_path(copy.remote_path) == definition_path(remote_version.path)


def is_same_group(copy: SentObject, remote_group: Mapping[str, Any]) -> bool:
    """Whether a remote Group is one that this link created. Without times of creation, only an equal one is."""
    creation_time = creation_time_of(remote_group)
    if copy.identity and creation_time:
        return copy.identity == creation_time
    return copy.digest == group_digest(remote_group)


def creation_time_of(remote_group: Mapping[str, Any]) -> str:
    """The time when the other registry created a Group; empty if it does not say."""
    creation_time = remote_group.get("createdtimeutc")
    return creation_time if isinstance(creation_time, str) else ""


def group_digest(body: Mapping[str, Any]) -> str:
    """The digest of what a link writes of a Group."""
    return sha256(dumps(comparable_group(body))).hexdigest()


def definition_path(version_path: str) -> str:
    """The path of a Version's definition."""
    return version_path.rpartition("/versions/")[0]
