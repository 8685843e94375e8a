"""Where the older APIs are reached besides their canonical paths: aliases at the root, and hosts of their own.

Such a request becomes one to the canonical path before anything else looks at it, so that its answer is the same one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from api.http.allowed_hosts import host_name
from api.http.request import Request
from domain.compat.legacy_apis import MESSAGECATALOG, SCHEMAREGISTRY, LegacyApi

#: First segments at the root that lead to a façade as long as the model leaves them free (LEG-102, LEG-103).
ALIASES: Final[Mapping[str, LegacyApi]] = {
    "schema": SCHEMAREGISTRY,
    "messagecatalog": MESSAGECATALOG,
    "messagedefinition": MESSAGECATALOG,
}


class CompatAliases:
    """hosts: façades by lower-case host name. is_free: whether a name at the root means nothing to the model."""

    def __init__(self, hosts: Mapping[str, LegacyApi], is_free: Callable[[str], bool]) -> None:
        self._hosts = hosts
        self._is_free = is_free

    def mounted(self, request: Request, host: str) -> Request:
        """The request to the canonical path; itself where it is to no façade. host: with or without a port."""
        family = self._hosts.get(host_name(host)) if self._hosts else None
        if family is not None:
            # URLs in answers are canonical, so they have to work on this host as well.
            return request if _is_below(request.raw, family.base) else request.at(family.base + request.raw)
        first = request.segments[0] if request.segments else ""
        family = ALIASES.get(first)
        if family is None or not self._is_free(first):
            return request
        return request.at(family.base + request.raw)


def families_by_host(schemaregistry: Iterable[str], messagecatalog: Iterable[str]) -> dict[str, LegacyApi]:
    """Façades by host name, from the settings' lists."""
    return {
        **{host.lower(): SCHEMAREGISTRY for host in schemaregistry},
        **{host.lower(): MESSAGECATALOG for host in messagecatalog},
    }


def _is_below(raw: str, base: str) -> bool:
    return raw == base or raw.startswith(f"{base}/")
