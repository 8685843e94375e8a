"""What a provider says about itself (ACC-51).

Spec: OpenID Connect Discovery 1.0, "OpenID Provider Metadata"; RFC 9207, "Authorization Server Metadata".
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from annals.api.auth.issuer_requests import FETCH_SECONDS, send
from annals.api.auth.jwt_keys import IssuerKeys, is_url
from annals.domain.errors.http_errors import ProviderUnavailable
from annals.domain.values.json_text import loads
from annals.projections.outgoing.resolver import Resolver

METADATA_PATH: Final = "/.well-known/openid-configuration"
#: Minimum seconds between two reads, after which one is made in any case, and for which an old one is good.
MIN_REFRESH_SECONDS: Final = 10.0
MAX_REFRESH_SECONDS: Final = 600.0
MAX_STALE_SECONDS: Final = 86400.0
#: A URL that can be in a header: an endpoint is where browsers are redirected to, and its origin is in their CSP.
_URL: Final = re.compile(r"https?://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?([/?][!-~]*)?")
_LOG: Final = logging.getLogger("annals.callers")


@dataclass(frozen=True, slots=True)
class ProviderMetadata:
    """The endpoints of a provider; each is an https URL, or an http URL of this machine.

    names_itself: whether a callback always has `iss`. takes_post: whether the client's secret goes into the body.
    device_authorization_endpoint: where a program without a browser begins a sign-in.
    """

    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    end_session_endpoint: str | None
    names_itself: bool
    takes_post: bool
    device_authorization_endpoint: str | None


class MetadataSource:
    """The metadata of one provider, read when it is needed. Belongs to one event loop."""

    def __init__(self, issuer: str, resolver: Resolver) -> None:
        self._issuer = issuer
        self._resolver = resolver
        self._lock = asyncio.Lock()
        self._metadata: ProviderMetadata | None = None
        self._keys: IssuerKeys | None = None
        self._attempted_at: float | None = None
        self._read_at = 0.0
        self._refresh_task: asyncio.Task[None] | None = None

    @property
    def known(self) -> ProviderMetadata | None:
        """The metadata if it has been read already."""
        return self._metadata

    @property
    def known_keys(self) -> IssuerKeys | None:
        """The keys if the metadata has been read already."""
        return self._keys if self._metadata is not None else None

    async def refresh(self) -> None:
        """Begins to read the metadata and the keys if they are known and old. Requests do not wait for it."""
        keys = self.known_keys
        if keys is None:
            return
        if self._is_due() and not self._lock.locked():
            self._refresh_task = asyncio.get_running_loop().create_task(self._refresh())
        await keys.refresh()

    async def _refresh(self) -> None:
        with suppress(ProviderUnavailable):
            await self.current()

    async def current(self) -> tuple[ProviderMetadata, IssuerKeys]:
        """The metadata, and the keys that it names. One request reads, others wait. Raises: ProviderUnavailable."""
        async with self._lock:
            if self._is_due():
                self._attempted_at = time.monotonic()
                await self._read()
            if self._metadata is None or self._keys is None:
                raise ProviderUnavailable()
            return self._metadata, self._keys

    def _is_due(self) -> bool:
        if self._attempted_at is None:
            return True
        age = time.monotonic() - self._attempted_at
        return age > (MIN_REFRESH_SECONDS if self._metadata is None else MAX_REFRESH_SECONDS)

    async def _read(self) -> None:
        """Reads the metadata. If that fails, what is known stays valid for a day, and the log has the reason."""
        try:
            async with asyncio.timeout(FETCH_SECONDS):
                response = await send(self._issuer.rstrip("/") + METADATA_PATH, self._resolver, "GET")
            if response.status != 200:
                raise ValueError(f"it answers {response.status}")
            metadata = parse_metadata(response.body, self._issuer)
        except Exception as error:  # a failure of the provider must not fail other requests
            message = " ".join(str(error).split()) or type(error).__name__
            _LOG.warning("the metadata of the provider %s cannot be read: %s", self._issuer, message[:500])
            if time.monotonic() - self._read_at > MAX_STALE_SECONDS:
                self._metadata = None
            return
        if self._keys is None or self._metadata is None or metadata.jwks_uri != self._metadata.jwks_uri:
            self._keys = IssuerKeys(metadata.jwks_uri, self._resolver)
        self._metadata, self._read_at = metadata, time.monotonic()


def parse_metadata(content: bytes, issuer: str) -> ProviderMetadata:
    """The metadata in a document. Raises: ValueError for what is no usable metadata of this issuer."""
    members = loads(content)
    if not isinstance(members, dict):
        raise ValueError("it is not a JSON object")
    if members.get("issuer") != issuer:
        raise ValueError("its issuer is not the one in ANNALS_OIDC_ISSUER")
    methods = members.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    return ProviderMetadata(
        _endpoint(members, "authorization_endpoint"),
        _endpoint(members, "token_endpoint"),
        _endpoint(members, "jwks_uri"),
        _optional_endpoint(members, "end_session_endpoint"),
        members.get("authorization_response_iss_parameter_supported") is True,
        isinstance(methods, list) and "client_secret_basic" not in methods,
        _optional_endpoint(members, "device_authorization_endpoint"),
    )


def _optional_endpoint(members: Mapping[str, Any], name: str) -> str | None:
    return _endpoint(members, name) if members.get(name) is not None else None


def _endpoint(members: Mapping[str, Any], name: str) -> str:
    value = members.get(name)
    if not isinstance(value, str) or not _URL.fullmatch(value) or not is_url(value):
        raise ValueError(f"its {name} is no URL")
    return value
