"""Successive writes to one server of the standard API, which links copy to others."""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any, Final

from tests.support.polling import until
from tests.support.registries.restarted import Registry
from tests.support.registries.standard import SHORT_INTERVAL

#: The members of a link over the standard API.
LINK: Final = {"dialect": "xregistry", "interval": SHORT_INTERVAL}
PUSH: Final = {**LINK, "mode": "push"}
#: Documents as Base64.
SPACED: Final = base64.b64encode(b'{ "spaces" :  "stay" }\n').decode()
BINARY: Final = base64.b64encode(bytes(range(256))).decode()
LONG_AGO: Final = "2001-02-03T04:05:06Z"

#: Successive writes to the source: name, method, path, body, and the number of interactions it causes at the copy.
CHANGES: Final[list[tuple[str, str, str, Any, int]]] = [
    ("a Group", "PUT", "/dirs/d", {"name": "D", "labels": {"a": "b"}, "colour": "red"}, 1),
    ("a file", "PUT", "/dirs/d/files/f$details", {"versions": {"one": {"name": "1", "filebase64": SPACED}}}, 1),
    ("bytes", "POST", "/dirs/d/files/f/versions", {"two": {"contenttype": "x/y", "filebase64": BINARY}}, 1),
    ("a birth", "POST", "/dirs/d/files/f/versions", {"old": {"createdat": LONG_AGO, "ancestorid": "one"}}, 1),
    ("JSON", "POST", "/dirs/d/files/f/versions", {"3": {"contenttype": "application/json", "file": {"a": [1]}}}, 1),
    ("a change", "POST", "/dirs/d/files/f/versions", {"one": {"name": "2", "depth": 1.5, "filebase64": SPACED}}, 1),
    ("no bytes", "POST", "/dirs/d/files/f/versions", {"two": {"contenttype": "x/y", "filebase64": ""}}, 1),
    (
        "a default",
        "PUT",
        "/dirs/d/files/f/meta",
        {"defaultversionid": "two", "defaultversionsticky": True, "deprecated": {"removal": "2030-01-01T00:00:00Z"}},
        1,
    ),
    ("a meta", "PUT", "/dirs/d/files/f/meta", {"defaultversionid": "3", "defaultversionsticky": True}, 1),
    ("one less", "DELETE", "/dirs/d/files/f/versions", {"old": {}}, 1),
    ("a note", "PUT", "/dirs/d/notes/n", {"name": "a note", "text": {"de": "Notiz"}}, 1),
    ("elsewhere", "PUT", "/dirs/d/files/away$details", {"versions": {"1": {"fileurl": "http://x.example/f"}}}, 1),
    ("a pointer", "PUT", "/dirs/d/files/p$details", {"meta": {"xref": "/dirs/d/files/f"}}, 1),
    ("the Group", "PUT", "/dirs/d", {"name": "other", "createdat": LONG_AGO}, 1),
    ("a second Group", "PUT", "/dirs/e", {}, 1),
    ("and a third", "PUT", "/dirs/f", {"description": "three make two pages"}, 1),
    ("no note", "DELETE", "/dirs/d/notes/n", None, 1),
    ("no Group", "DELETE", "/dirs/e", None, 1),
]


def check_order_of_versions(source: Registry, copy: Registry, mode: str, link: Callable[[], object]) -> None:
    """Checks that a copy has the default Version, the ancestors and the times of its source after each of some changes.

    mode: `versionmode` of the Resource, which may compute ancestors. link: connects both.
    """
    edits = {"edits": {"singular": "edit", "versionmode": mode, "hasdocument": False}}
    for registry in (source, copy):
        registry.done("PUT", "/modelsource", {"groups": {"dirs": {"singular": "dir", "resources": edits}}})
    source.done("PUT", "/dirs/d/edits/e", {"versions": {"a": {}, "b": {}, "c": {}, "d": {}}})
    link()
    until(lambda: _versions(source) == _versions(copy))
    for method, id, body in (("PATCH", "a", {}), ("DELETE", "c", None), ("PATCH", "b", {}), ("PUT", "e", {})):
        source.done(method, f"/dirs/d/edits/e/versions/{id}", body)
        until(lambda: _versions(source) == _versions(copy))


def _versions(registry: Registry) -> Any:
    answer = registry.request("GET", "/dirs/d/edits/e?inline=versions,meta")
    if answer.status_code == 404:
        return None
    edit = answer.json()
    versions = {id: (each["ancestorid"], each["modifiedat"]) for id, each in edit["versions"].items()}
    return edit["meta"]["defaultversionid"], versions
