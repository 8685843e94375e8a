"""Forms of entities with odd values and names, sent as a browser does: what nobody touched stays as it is."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any, Final
from urllib.parse import urlencode

import httpx
import pytest

from tests.support.html_pages import HtmlPage, sent_values
from tests.support.registries.in_process import BASE, Api, create, serving

FORM: Final = {"content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin"}
#: Attributes with the names of what forms, other kinds of entities and the requests have.
NAMES: Final = ("action", "document", "position", "metaepoch", "loadedversion", "kept", "pick")
OF_OTHERS: Final = ("ancestorid", "versionid", "isdefault", "specversion", "registryid")
ATTRIBUTES: Final[dict[str, Any]] = {
    **{name: {"type": "string"} for name in (*NAMES, *OF_OTHERS)},
    "off": {"type": "boolean"},
    "choice": {"type": "string", "enum": ["a", " b  c "]},
    "anything": {"type": "any"},
    "members": {"type": "map", "item": {"type": "any"}},
    "*": {"type": "any"},
}
SWITCHES: Final = {
    "must": {"type": "boolean", "required": True},
    "on": {"type": "boolean", "required": True, "default": True},
    "maybe": {"type": "boolean"},
}
TYPES: Final = {
    "pads": {"singular": "pad", "attributes": {name: ATTRIBUTES[name] for name in NAMES}},
    "notes": {"singular": "note", "hasdocument": False},
    "checks": {
        "singular": "check",
        "hasdocument": False,
        "attributes": {
            "off": {"type": "boolean"},
            "never": {"type": "boolean"},
            "must": {"type": "boolean", "required": True},
        },
    },
    "flags": {
        "singular": "flag",
        "hasdocument": False,
        "metaattributes": {"on": {"type": "boolean", "required": True, "default": True}},
    },
}
TEXTS: Final = {"description": "one\ntwo\n", "name": " ", "pick": "", "kept": "a\r\nb"}
BOX: Final[dict[str, Any]] = {**dict.fromkeys((*NAMES, *OF_OTHERS), "mine"), **TEXTS, "off": False, "choice": " b  c "}


@pytest.fixture
def api(sqlite_url: str) -> Iterator[Api]:
    boxes = {"singular": "box", "attributes": ATTRIBUTES, "resources": TYPES}
    create(sqlite_url, {"groups": {"boxes": boxes, "sets": {"singular": "set", "attributes": SWITCHES}}})
    with serving(sqlite_url) as api:
        yield api


def loaded(api: Api, path: str) -> dict[str, str]:
    """The form of a page as a browser sends it if nobody touches it."""
    answer = api.send("GET", f"/ui/{path}", accept="text/html")
    assert answer.status_code == 200, answer.text
    (form,) = (each for each in HtmlPage(answer.text).main.all("form") if each.attributes["method"] == "post")
    return sent_values(form)


def send(api: Api, path: str, fields: dict[str, str], action: str = "save") -> httpx.Response:
    body = urlencode({**fields, "form action": action}).encode()
    return api.send("POST", f"/ui/{path}", body, accept="text/html", **FORM)


def saved(api: Api, path: str, **typed: str) -> dict[str, Any]:
    """The attributes after a save of what was typed into the form."""
    assert send(api, f"edit/{path}", {**loaded(api, f"edit/{path}"), **typed}).status_code == 303
    found: dict[str, Any] = api.get(f"/{path}" + "$details" * ("/pads/" in path))
    return found


def settable(entity: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entity.items() if name not in ("epoch", "modifiedat")}


def test_what_nobody_touched_stays(api: Api) -> None:
    """UI-80, UI-84: texts of several lines, blank ones, names that forms use themselves, and switches that are off."""
    before = api.done("PUT", "/boxes/b", BOX).json()
    assert settable(saved(api, "boxes/b", icon="https://e/i")) == {**settable(before), "icon": "https://e/i"}
    assert send(api, "edit/boxes/b", loaded(api, "edit/boxes/b")).headers["location"].endswith("?saved=nothing")
    assert saved(api, "boxes/b", versionid="other", position="left")["versionid"] == "other"


def test_documents_beside_attributes_of_that_name(api: Api) -> None:
    """UI-80: also the line ends of documents, which forms do not keep."""
    pad = {**dict.fromkeys(NAMES, "mine"), "padbase64": "YQ1iDQpjCg==", "contenttype": "text/plain"}
    before = api.done("PUT", "/boxes/b/pads/p$details", pad | {"description": "x\ry"}).json()
    assert settable(saved(api, "boxes/b/pads/p", name="named")) == {**settable(before), "name": "named"}
    assert api.send("GET", "/boxes/b/pads/p").content == b"a\rb\r\nc\n"


def test_switches_of_new_entities(api: Api) -> None:
    """UI-80: required ones can be off; one with a default begins with it."""
    form = loaded(api, "new/sets")
    assert form.get("on") == "on" and "must" not in form
    assert send(api, "new/sets", {**form, "setid": "b"}).status_code == 303
    off = {name: text for name, text in form.items() if name != "on"}
    assert send(api, "new/sets", {**off, "setid": "c"}).status_code == 303
    shown = [{name: api.get(f"/sets/{id}").get(name) for name in ("must", "on", "maybe")} for id in "bc"]
    assert shown == [{"must": False, "on": on, "maybe": None} for on in (True, False)]
    api.done("PUT", "/boxes/b", {})
    assert send(api, "new/boxes/b/flags", {**loaded(api, "new/boxes/b/flags"), "flagid": "f"}).status_code == 303
    assert api.get("/boxes/b/flags/f/meta")["on"] is True
    page = HtmlPage(api.send("GET", "/ui/edit/sets/b").text)
    assert "required" not in page.fields["must"].attributes
    assert saved(api, "sets/b", maybe="on")["maybe"] is True


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("edit/boxes/b", "/boxes/b"),
        ("edit/boxes/b/notes/n", "/boxes/b/notes/n"),
        ("new/boxes", "/boxes"),
        ("new/boxes/b/notes/n/versions", "/boxes/b/notes/n/versions"),
    ],
)
def test_forms_lead_to_what_they_are_about(api: Api, path: str, url: str) -> None:
    """UI-34: "Raw JSON" leads to what the page shows."""
    api.done("PUT", "/boxes/b", {"notes": {"n": {}}})
    page = api.send("GET", f"/ui/{path}").text
    assert re.findall(r'href="([^"]*)">Raw JSON</a>', page) == [f"{BASE}{url}"]


def test_a_new_version_keeps_switches_that_are_off(api: Api) -> None:
    """UI-80: also those that may be missing, in which case nothing says that they are off."""
    api.done("PUT", "/boxes/b/checks/c", {"off": False, "must": False})
    form = loaded(api, "new/boxes/b/checks/c/versions") | {"versionid": "2"}
    assert send(api, "new/boxes/b/checks/c/versions", form).status_code == 303
    made = api.get("/boxes/b/checks/c/versions/2")
    assert [made.get(name) for name in ("off", "must", "never")] == [False, False, None]


@pytest.mark.parametrize(
    ("before", "typed", "after"),
    [
        ({"members": {"a": 1}}, {"members": '{"a": true}'}, {"members": {"a": True}}),
        ({"anything": True}, {"anything": "1"}, {"anything": 1}),
        ({"x": False}, {"other attributes": '{"x": 0}'}, {"x": 0}),
    ],
)
def test_numbers_are_no_switches(api: Api, before: Any, typed: dict[str, str], after: Any) -> None:
    """UI-80."""
    api.done("PUT", "/boxes/b", before)
    found = saved(api, "boxes/b", **typed)
    (name,) = after
    assert repr(found[name]) == repr(after[name])


def test_an_xref_that_leads_nowhere(api: Api) -> None:
    """UI-27, UI-70: it is edited and deleted like others."""
    api.done("PUT", "/boxes/b/notes/n/meta", {"xref": "/boxes/b/notes/none"})
    for page in ("edit", "delete"):
        assert api.send("GET", f"/ui/{page}/boxes/b/notes/n", accept="text/html").status_code == 200
    assert api.send("GET", "/ui/new/boxes/b/notes/n/versions", accept="text/html").status_code == 200
    assert send(api, "delete/boxes/b/notes/n", loaded(api, "delete/boxes/b/notes/n")).status_code == 303
    assert api.get("/boxes/b/notes") == {}


@pytest.mark.parametrize("path", ["boxes/b", "boxes/b/notes/n", "boxes/b/notes/n/versions/1"])
def test_a_save_does_not_bring_back_what_was_deleted(api: Api, path: str) -> None:
    """UI-81, UI-84."""
    api.done("PUT", "/boxes/b/notes/n", {})
    form = loaded(api, f"edit/{path}") | {"name": "typed"}
    api.done("DELETE", "/boxes/b")
    answer = send(api, f"edit/{path}", form)
    page = HtmlPage(answer.text)
    assert answer.status_code == 412 and "Somebody has deleted this" in page.statuses[0]
    assert page.fields["name"].attributes["value"] == "typed" and api.get("/boxes") == {}


@pytest.mark.parametrize("path", ["boxes/b", "boxes/b/notes/n", "boxes/b/notes/n/versions/1"])
def test_what_was_deleted_and_made_again_is_a_conflict(api: Api, path: str) -> None:
    """UI-84: also if it has the epoch that the form was loaded with."""

    def make(name: str) -> None:
        api.done("PUT", "/boxes/b", {"name": name, "notes": {"n": {"versionid": "1", "name": name}}})

    make("first")
    form = loaded(api, f"edit/{path}") | {"name": "typed"}
    api.done("DELETE", "/boxes/b")
    api.now += timedelta(seconds=1)
    make("second")
    assert api.get(f"/{path}")["epoch"] == int(form["loaded epoch"])
    for action in ("preview", "save"):
        answer = send(api, f"edit/{path}", form, action)
        page = HtmlPage(answer.text)
        assert answer.status_code == 409 and page.heading == "Conflict"
    assert page.table("Three-way difference")[0][:4] == ["name", "first", "second", "typed"]
    assert api.get(f"/{path}")["name"] == "second"
    (merge,) = (each for each in page.main.all("form") if "Conflict" in each.attributes.values())
    chosen = {**sent_values(merge), "pick name": "yours"}
    assert send(api, f"edit/{path}", chosen, "merged").status_code == 303
    assert api.get(f"/{path}")["name"] == "typed"


def test_another_default_version_is_a_conflict(api: Api) -> None:
    """UI-84."""
    api.done("PUT", "/boxes/b/notes/n", {"name": "first"})
    form = loaded(api, "edit/boxes/b/notes/n") | {"icon": "https://e/i"}
    api.done("PUT", "/boxes/b/notes/n/versions/9", {"name": "second"})
    answer = send(api, "edit/boxes/b/notes/n", form)
    assert answer.status_code == 409 and HtmlPage(answer.text).heading == "Conflict"
    (merge,) = (each for each in HtmlPage(answer.text).main.all("form") if "Conflict" in each.attributes.values())
    assert send(api, "edit/boxes/b/notes/n", sent_values(merge), "merged").status_code == 303
    found = api.get("/boxes/b/notes/n")
    assert (found["versionid"], found["name"], found["icon"]) == ("9", "second", "https://e/i")


def test_a_file_has_to_be_chosen_again_after_a_conflict(api: Api) -> None:
    """UI-81, UI-84: a page cannot choose it."""
    api.done("PUT", "/boxes/b/pads/p", b"old")
    form = loaded(api, "edit/boxes/b/pads/p") | {"form action": "save"}
    api.done("PATCH", "/boxes/b/pads/p$details", {"name": "theirs"})
    parts = "".join(f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{form[name]}\r\n' for name in form)
    file = '--x\r\nContent-Disposition: form-data; name="document file"; filename="new.txt"\r\n\r\nnew\r\n--x--\r\n'
    headers = {**FORM, "content-type": "multipart/form-data; boundary=x", "accept": "text/html"}
    answer = api.send("POST", "/ui/edit/boxes/b/pads/p", (parts + file).encode(), **headers)
    page = HtmlPage(answer.text)
    assert answer.status_code == 409 and "new.txt" in page.main.text
    assert page.fields["Document file"].attributes["name"] == "document file"


@pytest.mark.parametrize(("before", "now"), [(b"\x00", b"text"), (b"text", b"\x00")])
def test_a_document_that_became_another_kind_of_bytes(api: Api, before: bytes, now: bytes) -> None:
    """UI-84: a merge keeps it, as the form has no text of it, and says if what was typed is not saved."""
    path = "/boxes/b/pads/p"
    api.done("PUT", path, before)
    form = loaded(api, f"edit{path}")
    typed: dict[str, str] = {name: "typed" for name in ("name", "document text") if name == "name" or name in form}
    api.done("PUT", path, now)
    answer = send(api, f"edit{path}", {**form, **typed})
    page = HtmlPage(answer.text)
    assert answer.status_code == 409 and ("Your text of it is not saved." in page.main.text) is (b"\x00" in now)
    (merge,) = (each for each in page.main.all("form") if "Conflict" in each.attributes.values())
    assert send(api, f"edit{path}", sent_values(merge), "merged").status_code == 303
    assert api.send("GET", path).content == now and api.get(f"{path}$details")["name"] == "typed"


def test_the_only_version_takes_its_resource_along(api: Api) -> None:
    """UI-16, UI-85: the page says so and asks for the id; then it shows the collection of the Resource."""
    api.done("PUT", "/boxes/b/notes/n", {})
    path = "delete/boxes/b/notes/n/versions/1"
    form = loaded(api, path)
    page = HtmlPage(api.send("GET", f"/ui/{path}").text)
    assert page.table("Deleted with it") == [["boxes.notes", "1"]] and "confirm" in form
    assert send(api, path, form).status_code == 400
    answer = send(api, path, {**form, "confirm": "1"})
    assert answer.status_code == 303 and "/ui/explore/boxes/b/notes?" in answer.headers["location"]


def test_the_versions_of_a_target_are_not_deleted(api: Api) -> None:
    """UI-85."""
    api.done("PUT", "/boxes/b/notes/t", {})
    api.done("PUT", "/boxes/b/notes/x/meta", {"xref": "/boxes/b/notes/t"})
    text = HtmlPage(api.send("GET", "/ui/delete/boxes/b/notes/x").text).main.text
    assert "Nothing else." in text and "/notes/x/versions" not in text
