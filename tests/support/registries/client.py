"""A client of a served registry that writes schemas in a format without checks."""

from __future__ import annotations

from typing import Any, Final

import httpx

#: A Version of a schema in such a format.
VERSION: Final = {"format": "Text/1"}


class RegistryClient:
    """Shorthands for requests to a served registry."""

    _client: httpx.Client

    def request(self, method: str, path: str, body: Any = None, **options: Any) -> httpx.Response:
        """The response to a request with a JSON body, or with none."""
        given = {} if body is None else {"json": body}
        return self._client.request(method, path, **given, **options)

    def done(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of the response to a request, which must succeed; None without a body."""
        answer = self.request(method, path, body)
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def write(self, version: str, **attributes: Any) -> str:
        """Writes a Version, given as `group/schema/version`, and missing parents. Returns the id of the interaction."""
        answer = self.request("PUT", f"{xid(version)}$details", VERSION | attributes)
        assert answer.is_success, answer.text
        return answer.headers["xregistry-xregcorrelationid"]

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()


def xid(version: str) -> str:
    """The xid of a Version, given as `group/schema/version`."""
    group, schema, name = version.split("/")
    return f"/schemagroups/{group}/schemas/{schema}/versions/{name}"
