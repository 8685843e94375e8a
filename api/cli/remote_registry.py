"""A client for the tree hashes of another registry."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote, urlsplit

import httpx

from annals.api.cli.outcome import StoreError, UsageError
from annals.api.cli.server_tokens import bearer_headers
from annals.projections.audit.hash_comparison import HashQuery, HashSource, is_hash_response
from annals.projections.outgoing.certificates import tls_context

_TIMEOUT_SECONDS: Final = 60
_TOKEN_HINT: Final = " Give a token with --token or ANNALS_TOKEN, or sign in with annals auth login."


class RemoteRegistry:
    """A registry by the URL of its root. Callers have to `close` it."""

    def __init__(self, url: str, token: str | None = None, ca_file: str = "") -> None:
        """token: a bearer token, if the registry requires one. ca_file: see `tls_context`.

        Raises: UsageError if no header can have it, or if the URL is none of a registry.
        """
        url_parts = urlsplit(url)
        if url_parts.scheme not in ("http", "https") or not url_parts.netloc:
            raise UsageError(f"{url}: the URL of a registry begins with http:// or https://.")
        self._root_url = url.rstrip("/")
        self._client = httpx.Client(
            headers=bearer_headers(token), timeout=_TIMEOUT_SECONDS, verify=tls_context(ca_file)
        )

    def close(self) -> None:
        """Closes its connections."""
        self._client.close()

    def hash_source(self, xid: str, asof: str | None) -> HashSource:
        """A source of the hashes at and below an xid, at a moment or now. After the first response, all requests use
        its position.

        The returned function raises StoreError without a response of a registry that can be compared.
        """
        fixed_asof = [asof] if asof else []

        def ask(query: HashQuery) -> dict[str, Any]:
            members = self._fetch_hash(xid, {**query, "asof": fixed_asof})
            fixed_asof[:] = [str(members["asof"]["position"])]
            return members

        return ask

    def _fetch_hash(self, xid: str, query: HashQuery) -> dict[str, Any]:
        url = f"{self._root_url}/-/hash{quote(xid)}"
        try:
            response = self._client.get(url, params=query)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise StoreError(f"{self._root_url} does not answer: {error}.") from None
        try:
            members = response.json()
            if response.status_code == 200:
                if is_hash_response(members, query) and isinstance(members["asof"]["position"], int):
                    return dict(members)
                raise ValueError
            reason = f"{members['title']} {members.get('detail', '')}".strip()
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            reason = "this is not the answer of a registry with hashes; check the URL"
        hint = _TOKEN_HINT if response.status_code == HTTPStatus.UNAUTHORIZED else ""
        raise StoreError(f"GET {url} answers {response.status_code}: {reason}{hint}")
