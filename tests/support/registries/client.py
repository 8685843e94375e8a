"""A client of a served registry that writes schemas in a format that nobody checks."""

from __future__ import annotations

from typing import Any, Final

import httpx

#: A Version of a schema in such a format.
VERSION: Final = {"format": "Text/1"}


class RegistryClient:
    """What clients of a served registry send in short."""

    _client: httpx.Client

    def request(self, method: str, path: str, body: Any = None, **options: Any) -> httpx.Response:
        """What a request with a JSON body, or none, is answered with."""
        given = {} if body is None else {"json": body}
        return self._client.request(method, path, **given, **options)

    def done(self, method: str, path: str, body: Any = None) -> Any:
        """What a request that succeeds is answered with, None for no body."""
        answer = self.request(method, path, body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def write(self, version: str, **attributes: Any) -> str:
        """Makes a Version, and what it is in, by `group/schema/version`, or changes it; the id of the interaction."""
        answer = self.request("PUT", f"{xid(version)}$details", VERSION | attributes)
        assert answer.is_success, answer.text
        return answer.headers["xregistry-xregcorrelationid"]

    def close(self) -> None:
        """Gives its connections back."""
        self._client.close()


def xid(version: str) -> str:
    """The xid of a Version by `group/schema/version`."""
    group, schema, name = version.split("/")
    return f"/schemagroups/{group}/schemas/{schema}/versions/{name}"
