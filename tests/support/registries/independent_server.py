"""A small server of the standard API that shares no code with Annals: it stores all in memory, lists in pages of
two, has no export, and nests responses only if flags say so. It records the requests.

    python -m tests.support.registries.independent_server [FLAG...]

prints its URL. `GET /requests` returns all requests. After `POST /refuse` with an xid it refuses writes of that xid.
`POST /say?path=/dirs` sets the response to a GET of a path; an empty body restores its own response.
"""

from __future__ import annotations

import base64
import json
import socket
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

PAGE: Final = 2
MODEL: Final = {
    "groups": {
        "dirs": {
            "singular": "dir",
            "attributes": {"*": {"type": "any"}},
            "resources": {
                "files": {"singular": "file", "attributes": {"*": {"type": "any"}}},
                "notes": {"singular": "note", "hasdocument": False, "attributes": {"*": {"type": "any"}}},
            },
        }
    }
}
_SINGULARS: Final = {"dirs": "dir", "files": "file", "notes": "note"}
_SERVED: Final = ("self", "xid", "epoch", "isdefault", "versionid", "fileid", "noteid", "dirid")

Json = dict[str, Any]


def _now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")


def _entity(given: Mapping[str, Any], known: Json | None) -> Json:
    """The stored attributes of a written entity, with the server's times if it has none."""
    stored = {name: value for name, value in given.items() if name not in _SERVED and value is not None}
    born = known["createdat"] if known else _now()
    return {"createdat": born, "modifiedat": _now(), **stored, "epoch": known["epoch"] + 1 if known else 1}


class Group:
    """attributes: of the Group. resources: by collection and id."""

    def __init__(self) -> None:
        self.attributes = _entity({}, None)
        self.resources: dict[str, dict[str, Resource]] = {"files": {}, "notes": {}}


class Resource:
    """versions: by id, each with its document as the attribute with the empty name."""

    def __init__(self, plural: str) -> None:
        self.plural = plural
        self.meta = _entity({}, None)
        self.versions: dict[str, Json] = {}

    def write(self, given: Json, replaces: bool = True) -> None:
        """Writes a Resource with `meta` and `versions`, or its only Version."""
        singular = _SINGULARS[self.plural]
        versions = given.get("versions", {} if given.keys() == {"meta"} or not replaces else {"1": given})
        if "meta" in given:
            self.meta = _entity(given["meta"], self.meta)
        for id, each in versions.items():
            attributes = {name: value for name, value in each.items() if name not in ("meta", "versions")}
            text = attributes.pop(singular, None)
            encoded = attributes.pop(f"{singular}base64", None)
            content = base64.b64decode(encoded) if encoded else json.dumps(text).encode() if text is not None else b""
            stored = {"ancestorid": id} | _entity(attributes, self.versions.get(id))
            self.versions[id] = {**stored, "": content}

    def default(self) -> str:
        if self.meta.get("defaultversionsticky"):
            return str(self.meta["defaultversionid"])
        return max(self.versions, key=lambda id: (self.versions[id]["createdat"], id))

    def version(self, xid: str, id: str) -> Json:
        shown = {name: value for name, value in self.versions[id].items() if name}
        own = f"{_SINGULARS[self.plural]}id"
        return {own: xid.split("/")[4], "versionid": id, "xid": xid, "isdefault": id == self.default(), **shown}

    def shown_meta(self, xid: str) -> Json:
        own = f"{_SINGULARS[self.plural]}id"
        sticky = {"defaultversionid": self.default(), "defaultversionsticky": False} if self.versions else {}
        return {own: xid.split("/")[4], "xid": f"{xid}/meta", "readonly": False, **sticky, **self.meta}

    def resource_details(self, xid: str) -> Json:
        if not self.versions:
            return {f"{_SINGULARS[self.plural]}id": xid.split("/")[4], "xid": xid}
        return {**self.version(xid, self.default()), "versionscount": len(self.versions)}

    def listed(self, xid: str, inlined: list[str]) -> Json:
        """The Resource as a member of a list."""
        versions = {id: self.version(f"{xid}/versions/{id}", id) for id in self.versions}
        nested = {"meta": self.shown_meta(xid), "versions": versions}
        return {**self.resource_details(xid), **{name: each for name, each in nested.items() if name in inlined}}


class Plain:
    """The server. requests: all requests. overrides: responses to GET by path that replace its own. refused: xids.

    flags: the flags it supports; with `inline` its lists of Resources nest `meta` and `versions`, and it refuses to
    nest more.
    """

    def __init__(self, *flags: str) -> None:
        self.flags = flags
        self.groups: dict[str, Group] = {}
        self.overrides: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.refused: set[str] = set()

    async def answer(self, request: Request) -> Response:
        """The response to any request."""
        path = request.url.path
        if path == "/requests":
            return JSONResponse(self.requests)
        if path == "/refuse":
            self.refused.add((await request.body()).decode())
            return JSONResponse({})
        if path == "/say":
            self.overrides[request.query_params["path"]] = await request.body()
            return JSONResponse({})
        self.requests.append(f"{request.method} {path}")
        details = path.endswith("$details")
        parts = path.removesuffix("$details").strip("/").split("/")
        try:
            if request.method == "GET" and self.overrides.get(path):
                return Response(self.overrides[path], media_type="application/json")
            if request.method == "GET":
                return self.read(request, parts, details)
            body = await request.body()
            return self.write(request.method, parts, json.loads(body) if body else None)
        except (KeyError, ValueError, IndexError) as error:
            return JSONResponse({"type": "about:blank", "title": f"There is nothing: {error}"}, 404)

    def read(self, request: Request, parts: list[str], details: bool) -> Response:
        fixed = {"": {"specversion": "1.0", "registryid": "plain", "xid": "/"}, "model": MODEL}
        fixed["capabilities"] = {
            "flags": ["epoch", *self.flags],
            "pagination": True,
            "apis": ["/capabilities", "/model"],
        }
        inlined = request.query_params.get("inline", "").split(",") if "inline" in self.flags else []
        if "*" in inlined:
            return JSONResponse({"type": "about:blank", "title": "That is too much"}, 413)
        if parts[0] in fixed:
            return JSONResponse(fixed[parts[0]])
        if parts[0] != "dirs":
            raise KeyError(parts[0])
        if len(parts) == 1:
            return self.page(request, {id: self.group(id) for id in self.groups})
        if len(parts) == 2:
            return JSONResponse(self.group(parts[1]))
        resources = self.groups[parts[1]].resources[parts[2]]
        if len(parts) == 3:
            listed = {id: one.listed(f"/{'/'.join(parts)}/{id}", inlined) for id, one in resources.items()}
            return self.page(request, listed)
        resource, xid = resources[parts[3]], "/" + "/".join(parts[:4])
        if parts[4:] == ["meta"]:
            return JSONResponse(resource.shown_meta(xid))
        if parts[4:] == ["versions"]:
            return self.page(request, {id: resource.version(f"{xid}/versions/{id}", id) for id in resource.versions})
        id = parts[5] if len(parts) == 6 else resource.default()
        if details or parts[2] == "notes":
            return JSONResponse(resource.version(f"{xid}/versions/{id}", id))
        content = resource.versions[id]
        return Response(content[""], media_type=content.get("contenttype", "application/json"))

    def group(self, id: str) -> Json:
        group = self.groups[id]
        counts = {f"{plural}count": len(members) for plural, members in group.resources.items()}
        return {"dirid": id, "xid": f"/dirs/{id}", **group.attributes, **counts}

    def page(self, request: Request, members: Json) -> Response:
        """A page of two members. The link to the next page is relative, which the standard allows."""
        first = int(request.query_params.get("from", 0))
        headers = {}
        if first + PAGE < len(members):
            inlined = request.query_params.get("inline")
            query = f"from={first + PAGE}" + (f"&inline={inlined}" if inlined else "")
            headers["link"] = f"<{request.url.path}?{query}>;rel=next;count={len(members)}"
        return JSONResponse(dict(list(members.items())[first : first + PAGE]), headers=headers)

    def write(self, method: str, parts: list[str], body: Any) -> Response:
        xid = "/" + "/".join(parts[:4])
        if xid in self.refused:
            return JSONResponse({"type": "about:blank", "title": f"{xid} is not wanted"}, 400)
        if method == "DELETE":
            return self.delete(parts, body)
        known = self.groups.get(parts[1])
        group = self.groups.setdefault(parts[1], known or Group())
        if len(parts) == 2:
            group.attributes = _entity(body, known.attributes if known else None)
            return JSONResponse(self.group(parts[1]))
        resource = group.resources[parts[2]].setdefault(parts[3], Resource(parts[2]))
        if parts[4:] == ["meta"]:
            resource.write({"meta": body})
        elif parts[4:] == ["versions"]:
            resource.write({"versions": body})
        elif len(parts) == 6:
            resource.write({"versions": {parts[5]: body}})
        else:
            resource.write(body)
        return JSONResponse(resource.resource_details(xid))

    def delete(self, parts: list[str], body: Any) -> Response:
        if len(parts) == 2:
            del self.groups[parts[1]]
            return Response(status_code=204)
        resources = self.groups[parts[1]].resources[parts[2]]
        if len(parts) == 4:
            del resources[parts[3]]
            return Response(status_code=204)
        for id in body if len(parts) == 5 else parts[5:]:
            del resources[parts[3]].versions[id]
        return Response(status_code=204)


def main() -> None:
    """Serves on a free port until it is killed."""
    plain = Plain(*sys.argv[1:])
    methods = ["GET", "PUT", "POST", "DELETE"]
    app = Starlette(routes=[Route("/{path:path}", plain.answer, methods=methods)])
    listening = socket.create_server(("127.0.0.1", 0))
    print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
    # A test may be slow between two requests; a connection must not end when the second one is sent.
    uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_keep_alive=600)).run([listening])


if __name__ == "__main__":
    main()
