"""Additional addresses of the legacy APIs: aliases at the root, and separate host names.

`CompatAliases` rewrites such a request to the canonical path before any other code reads it, so both addresses give the
same response.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from annals.api.http.browsers.allowed_hosts import host_name
from annals.api.http.request import Request
from annals.domain.compat.legacy_apis import MESSAGECATALOG, SCHEMAREGISTRY, LegacyApi

#: First path segments at the root that lead to a legacy API, unless the model uses the name (LEG-102, LEG-103).
ALIASES: Final[Mapping[str, LegacyApi]] = {
    "schema": SCHEMAREGISTRY,
    "messagecatalog": MESSAGECATALOG,
    "messagedefinition": MESSAGECATALOG,
}


class CompatAliases:
    """hosts: legacy APIs by lower-case host name. is_free: whether the model leaves a name at the root unused."""

    def __init__(self, hosts: Mapping[str, LegacyApi], is_free: Callable[[str], bool]) -> None:
        self._hosts = hosts
        self._is_free = is_free

    def canonical_request(self, request: Request, host: str) -> Request:
        """The request with its canonical path; the same request if it is not for a legacy API.

        host: with or without a port.
        """
        family = self._hosts.get(host_name(host)) if self._hosts else None
        if family is not None:
            # URLs in responses are canonical, so canonical paths have to work on this host too.
            return (
                request
                if _is_below(request.raw_path, family.base)
                else request.with_path(family.base + request.raw_path)
            )
        first_segment = request.segments[0] if request.segments else ""
        family = ALIASES.get(first_segment)
        if family is None or not self._is_free(first_segment):
            return request
        return request.with_path(family.base + request.raw_path)


def families_by_host(schemaregistry_hosts: Iterable[str], messagecatalog_hosts: Iterable[str]) -> dict[str, LegacyApi]:
    """Legacy APIs by host name, from the host lists of the settings."""
    return {
        **{host.lower(): SCHEMAREGISTRY for host in schemaregistry_hosts},
        **{host.lower(): MESSAGECATALOG for host in messagecatalog_hosts},
    }


def _is_below(raw_path: str, base_url: str) -> bool:
    return raw_path == base_url or raw_path.startswith(f"{base_url}/")
