"""Expands the expected response in a row of a table, and extracts the corresponding parts of an actual response.

Short forms in rows, at any depth:
- `$now`: the time of this request; `$t3`: of request 3 of the row; `$start`: before the first request.
- `{$xid: /dirs/d1, name: x}`: a whole entity as the first request of the row creates it: its ids, URLs, epoch 1, both
  timestamps `$t1`, empty collections (the registry: as before that request). Further members are added or replace
  these; `null` removes one.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Any, Final

from annals.domain.errors.problems import PROBLEM_TYPES, REQUEST_PATH, REQUEST_URL
from tests.support.registries.requests import BASE, MIDNIGHT, REGISTRYID, Answer, Request

JSON: Final = "application/json; charset=utf-8"
#: Members of a `then`. metadata: all `xRegistry-` headers except the correlation id, names without the prefix.
KEYS: Final = frozenset(("status", "headers", "metadata", "body", "only", "text", "base64", "problem", "log"))

_MOMENT: Final = re.compile(r"\$(now|start|t\d+)\b")
_PREFIX: Final = "xregistry-"
_CORRELATION: Final = "xregistry-xregcorrelationid"


def expected_response(
    then: Mapping[str, Any], model: Mapping[str, Any], number: int, request: Request
) -> dict[str, Any]:
    """The expanded `then` of request `number`."""
    stated: dict[str, Any] = _expanded(then, model, number)
    if "metadata" in stated:
        stated["metadata"] = _as_headers(stated["metadata"])
    if "problem" in stated:
        stated |= _problem(request, **stated["problem"])
    headers = {name.lower(): value for name, value in stated.get("headers", {}).items()}
    if {"body", "only", "problem"} & set(stated):
        # HTTP-6: JSON responses have this media type, with a charset
        headers.setdefault("content-type", JSON)
    return {**stated, "headers": headers}


def actual_response(answer: Answer, expected: Mapping[str, Any]) -> dict[str, Any]:
    """The parts of a response that an expectation names: equal to the expectation if the response meets it."""
    return {key: _PARTS[key](answer, wanted) for key, wanted in expected.items()}


def _problem(request: Request, type: str, subject: str | None = None, args: Any = None) -> dict[str, Any]:
    """The status and the body of an error. Without a subject, the one that the type implies is used."""
    kind = PROBLEM_TYPES[type]
    given = {REQUEST_PATH: request.path.partition("?")[0], REQUEST_URL: BASE + request.path}
    resolved_subject = subject or given.get(str(kind.fixed_subject), kind.fixed_subject)
    members = {
        "type": kind.uri(),
        "subject": resolved_subject,
        "args": {**dict.fromkeys(kind.placeholders()), **(args or {})},
    }
    return {"status": kind.status, "problem": {name: value for name, value in members.items() if value}}


def _actual_problem(answer: Answer, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The error in a response, without optional details, and with an `error_detail` that the row leaves open as null.

    Compares the title here: it has to be that of the type, with the arguments filled in.
    """
    body: dict[str, Any] = json.loads(answer.content)
    for detail in ("detail", "violations", "incompatibilities", "entities"):
        body.pop(detail, "any")
    title, args = body.pop("title", None), body.get("args", {})
    kind = PROBLEM_TYPES[wanted["type"].rpartition("#")[2]]
    filled = kind.title.replace("<subject>", body.get("subject", ""))
    for name, value in args.items():
        filled = filled.replace(f"<{name}>", value)
        if value and wanted.get("args", {}).get(name, value) is None:
            args[name] = None
    return body if title == filled else {**body, "title": title, "needed": filled}


def _headers(answer: Answer, wanted: Mapping[str, Any]) -> dict[str, str | None]:
    return {name: answer.headers.get(name) for name in wanted}


def _metadata(answer: Answer, wanted: Any) -> dict[str, str]:
    names = [name for name in answer.headers if name.startswith(_PREFIX) and name != _CORRELATION]
    return {name.removeprefix(_PREFIX): answer.headers[name] for name in names}


def _only(answer: Answer, wanted: Any) -> Any:
    return _picked(json.loads(answer.content), wanted)


def _picked(value: Any, wanted: Any) -> Any:
    """The members of an object that `wanted` has; None for a missing one."""
    if not isinstance(wanted, dict) or not isinstance(value, dict):
        return value
    return {name: _picked(value.get(name), inner) for name, inner in wanted.items()}


_PARTS: Final[dict[str, Callable[[Answer, Any], Any]]] = {
    "status": lambda answer, _: answer.status,
    "headers": _headers,
    "metadata": _metadata,
    "body": lambda answer, _: json.loads(answer.content) if answer.content else None,
    "only": _only,
    "text": lambda answer, _: answer.content.decode(),
    "base64": lambda answer, _: b64encode(answer.content).decode(),
    "problem": _actual_problem,
    "log": lambda _, wanted: wanted,  # checked by the runner of the rows
}


def _expanded(value: Any, model: Mapping[str, Any], number: int) -> Any:
    if isinstance(value, str):
        return _MOMENT.sub(lambda found: _time(found[1], number), value)
    if isinstance(value, list):
        return [_expanded(item, model, number) for item in value]
    if not isinstance(value, dict):
        return value
    members = {name: _expanded(inner, model, number) for name, inner in value.items()}
    return _entity(members, model) if "$xid" in members else members


def _time(word: str, number: int) -> str:
    seconds = {"now": number, "start": 0}.get(word)
    moment = MIDNIGHT + timedelta(seconds=int(word[1:]) if seconds is None else seconds)
    return moment.replace(tzinfo=None).isoformat() + "Z"


def _as_headers(members: Mapping[str, Any]) -> dict[str, str]:
    """Attributes as in the headers of a document: without `$details`, scalars as text."""
    texts = {name: value if isinstance(value, str) else json.dumps(value) for name, value in members.items()}
    return {name: text.removesuffix("$details") if name == "self" else text for name, text in texts.items()}


def _entity(members: dict[str, Any], model: Mapping[str, Any]) -> dict[str, Any]:
    """All members of an entity, from its xid and the other members in a row."""
    xid = members.pop("$xid")
    segments = [segment for segment in xid.split("/") if segment]
    implied = _IMPLIED[len(segments)](xid, segments, members, model["groups"])
    start = _time("t1", 0)
    common = {"xid": xid, "epoch": 1, "createdat": start, "modifiedat": start}
    return {name: value for name, value in {**common, **implied, **members}.items() if value is not None}


def _registry(xid: str, segments: Any, members: Any, groups: Mapping[str, Any]) -> dict[str, Any]:
    # The registry is older than the first request. The write of its model increased the epoch to 2.
    start = _time("start", 0)
    ids = {"specversion": "1.0-rc4", "registryid": REGISTRYID, "self": f"{BASE}/"}
    return {**ids, "epoch": 2, "createdat": start, "modifiedat": start, **_collections("", groups)}


def _group(xid: str, segments: list[str], members: Any, groups: Mapping[str, Any]) -> dict[str, Any]:
    type = groups[segments[0]]
    own = {f"{type['singular']}id": segments[1], "self": BASE + xid}
    return {**own, **_collections(xid, type.get("resources", {}))}


def _resource(xid: str, segments: list[str], members: dict[str, Any], groups: Mapping[str, Any]) -> dict[str, Any]:
    version = members.get("versionid", "1")
    links = {"metaurl": f"{BASE}{xid}/meta", "versionsurl": f"{BASE}{xid}/versions", "versionscount": 1}
    return {**_versioned(xid, segments, version, groups), **links}


def _version(xid: str, segments: list[str], members: Any, groups: Mapping[str, Any]) -> dict[str, Any]:
    return _versioned(xid, segments, segments[5], groups)


def _versioned(xid: str, segments: list[str], version: str, groups: Mapping[str, Any]) -> dict[str, Any]:
    type = groups[segments[0]]["resources"][segments[2]]
    ids = {f"{type['singular']}id": segments[3], "versionid": version, "ancestorid": version}
    return {**ids, "self": BASE + xid + _details(type), "isdefault": True}


def _meta(xid: str, segments: list[str], members: dict[str, Any], groups: Mapping[str, Any]) -> dict[str, Any]:
    type = groups[segments[0]]["resources"][segments[2]]
    default = members.get("defaultversionid", "1")
    url = f"{BASE}{xid.removesuffix('meta')}versions/{default}{_details(type)}"
    pointer = {"defaultversionid": default, "defaultversionurl": url, "defaultversionsticky": False}
    return {f"{type['singular']}id": segments[3], "self": BASE + xid, "readonly": False, **pointer}


def _details(type: Mapping[str, Any]) -> str:
    return "$details" if type.get("hasdocument", True) else ""


def _collections(xid: str, types: Mapping[str, Any]) -> dict[str, Any]:
    urls = {f"{plural}url": f"{BASE}{xid}/{plural}" for plural in types}
    return {**urls, **{f"{plural}count": 0 for plural in types}}


#: Functions that return the implied members of an entity, by the number of segments in its xid.
_IMPLIED: Final[dict[int, Callable[[str, list[str], dict[str, Any], Mapping[str, Any]], dict[str, Any]]]] = {
    0: _registry,
    2: _group,
    4: _resource,
    5: _meta,
    6: _version,
}
