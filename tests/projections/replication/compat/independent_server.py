"""A small Schema Registry 0.2 that shares no code with this registry. It stores everything in memory, sends no entity
tags and no notifications, and has no attributes of a version except its id, authority and media type.

    python -m tests.projections.replication.compat.independent_server

prints its URL. `GET /requests` returns all requests. After `POST /away` it redirects requests to the URL in the body,
or answers 404 if that is `nowhere`. `POST /say` sets its responses to GET by path: JSON, or, for a string, a
document with that `Schema-Id`.
"""

from __future__ import annotations

import socket
from typing import Any, Final
from urllib.parse import quote, unquote

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

BASE: Final = "/registry"


class Plain:
    """The server's state. groups: attributes by group; schemas: versions by group, id and number."""

    def __init__(self, url: str) -> None:
        self.url = url + BASE
        self.groups: dict[str, dict[str, Any]] = {}
        self.schemas: dict[str, dict[str, dict[int, dict[str, Any]]]] = {}
        self.requests: list[str] = []
        self.away = ""
        self.overrides: dict[str, Any] = {}  # responses to GET by path: JSON, or the Schema-Id of a document

    async def answer(self, request: Request) -> Response:
        """Answers any request below the base."""
        raw = request.scope["raw_path"].decode()
        self.requests.append(f"{request.method} {raw}")
        if self.away == "nowhere":
            return _missing()
        if self.away:
            return Response(status_code=307, headers={"location": self.away + raw})
        if request.method == "GET" and (said := self.overrides.get(raw)) is not None:
            return Response(b"x", headers={"Schema-Id": said}) if isinstance(said, str) else JSONResponse(said)
        path = [unquote(part) for part in raw.removeprefix(BASE).split("/")[1:]]
        body = await request.body()
        if path == ["schema"]:
            return self._found(request.query_params["uri"])
        if path[0] != "schemagroups":
            return _missing()
        match len(path), request.method:
            case 1, "GET":
                return JSONResponse([quote(group, safe="") for group in self.groups])
            case 2, "PUT":
                known = path[1] in self.groups
                self.groups[path[1]] = {"id": quote(path[1], safe=""), **(await request.json())}
                self.schemas.setdefault(path[1], {})
                return JSONResponse(self.groups[path[1]], 200 if known else 201)
            case 4, "POST" if path[1] in self.groups:
                return self._added(path[1], path[3], request, body)
        return self._at(path, request.method)

    def _at(self, path: list[str], method: str) -> Response:
        """Reads or removes what is at a path."""
        names: list[Any] = [*path[1:4:2], *map(int, path[5:6])]
        place: Any = self.schemas
        for name in names[:-1]:
            place = place.get(name, {})
        last = names[-1]
        if last not in place:
            return _missing()
        if method == "DELETE":
            del place[last]
            if len(names) == 1:
                del self.groups[last]
            if len(names) == 3 and not place:
                del self.schemas[names[0]][names[1]]
            return Response(status_code=204)
        found = place[last]
        if len(path) == 2:
            return JSONResponse(self.groups[last])
        if len(path) == 6:
            return _document(found)
        if len(path) == 4:
            return _document(found[max(found)])
        return JSONResponse(sorted(found))

    def _added(self, group: str, id: str, request: Request, body: bytes) -> Response:
        versions = self.schemas[group].setdefault(id, {})
        number = max(versions, default=0) + 1
        path = f"/schemagroups/{quote(group, safe='')}/schemas/{quote(id, safe='')}/versions/{number}"
        said = request.query_params
        headers = {
            "Location": self.url + path,
            "Schema-Version": str(number),
            "Schema-Id": _encoded(said.get("id", path)),
        }
        if "authority" in said:
            headers["Schema-Authority"] = _encoded(said["authority"])
        type = request.headers.get("content-type", "application/octet-stream")
        versions[number] = {"headers": headers, "content": body, "type": type}
        return JSONResponse({"id": headers["Schema-Id"]}, headers=headers)

    def _found(self, uri: str) -> Response:
        for group in self.schemas.values():
            for versions in group.values():
                for version in versions.values():
                    if uri in (unquote(version["headers"]["Schema-Id"]), version["headers"]["Location"]):
                        return _document(version)
        return _missing()


def _document(version: dict[str, Any]) -> Response:
    found = Response(version["content"], headers=version["headers"])
    found.headers["content-type"] = version["type"]
    return found


def _encoded(value: str) -> str:
    """A value encoded for a header."""
    return value.replace("%", "%25")


def _missing() -> Response:
    return JSONResponse({"title": "there is nothing here"}, 404)


def main() -> None:
    """Serves until the process ends."""
    probe = socket.socket()
    probe.bind(("127.0.0.1", 0))
    probe.listen()
    url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    plain = Plain(url)

    async def list_requests(request: Request) -> Response:
        return JSONResponse(plain.requests)

    async def away(request: Request) -> Response:
        plain.away = (await request.body()).decode()
        return Response(status_code=204)

    async def say(request: Request) -> Response:
        plain.overrides = await request.json()
        return Response(status_code=204)

    routes = [
        Route("/say", say, methods=["POST"]),
        Route("/requests", list_requests),
        Route("/away", away, methods=["POST"]),
        Route("/{rest:path}", plain.answer, methods=["GET", "PUT", "POST", "DELETE"]),
    ]
    print(url, flush=True)
    uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_level="error")).run(sockets=[probe])


if __name__ == "__main__":
    main()
