"""Additional addresses of the legacy APIs: aliases at the root, and separate host names.

`CompatAliases` rewrites such a request to the canonical path before any other code reads it, so both addresses give the
same response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from annals.api.compat.confluent.own_port import is_at_own_port
from annals.api.compat.confluent.paths import canonical_path as confluent_path
from annals.api.compat.own_root import path_below
from annals.api.http.browsers.allowed_hosts import host_name
from annals.api.http.request import Request
from annals.domain.compat.legacy_apis import MESSAGECATALOG, SCHEMAREGISTRY, LegacyApi

#: First path segments at the root that lead to a legacy API, unless the model uses the name (LEG-102, LEG-103).
ALIASES: Final[Mapping[str, LegacyApi]] = {
    "schema": SCHEMAREGISTRY,
    "messagecatalog": MESSAGECATALOG,
    "messagedefinition": MESSAGECATALOG,
}


#: Returns the path in the registry for a path at a host name of one API.
CanonicalPath = Callable[[str], str]


class CompatAliases:
    """hosts: canonical paths by lower-case host name. is_free: whether the model leaves a name at the root unused."""

    def __init__(self, hosts: Mapping[str, CanonicalPath], is_free: Callable[[str], bool]) -> None:
        self._hosts = hosts
        self._is_free = is_free

    def canonical_request(self, request: Request, host: str) -> Request:
        """The request with its canonical path; the same request if it is not for a legacy API.

        host: with or without a port.
        """
        if is_at_own_port(request.scope):  # its root is Confluent's API under any name
            return request
        path_of = self._hosts.get(host_name(host)) if self._hosts else None
        if path_of is not None:
            path = path_of(request.raw_path)
            return request if path == request.raw_path else request.with_path(path)
        first_segment = request.segments[0] if request.segments else ""
        family = ALIASES.get(first_segment)
        if family is None or not self._is_free(first_segment):
            return request
        return request.with_path(family.base + request.raw_path)


def canonical_paths(
    schemaregistry_hosts: Iterable[str], messagecatalog_hosts: Iterable[str], confluent_hosts: Iterable[str]
) -> dict[str, CanonicalPath]:
    """The canonical paths of legacy APIs by host name, from the host lists of the settings."""
    return {
        **{host.lower(): partial(path_below, SCHEMAREGISTRY.base) for host in schemaregistry_hosts},
        **{host.lower(): partial(path_below, MESSAGECATALOG.base) for host in messagecatalog_hosts},
        **{host.lower(): confluent_path for host in confluent_hosts},
    }
