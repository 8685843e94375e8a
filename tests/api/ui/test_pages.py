"""Pages of empty registries, of problems, of past moments and of conflicts, and the links for administrators."""

from __future__ import annotations

import html
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from random import Random
from time import thread_time
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

import httpx
import pytest

from annals.api.ui.edit.line_merge import merge_lines
from annals.api.ui.explore.highlight import highlight
from annals.api.ui.routes import PAGES
from annals.domain.model.builtin import default_source
from tests.api.ui.pages import TOKENS, show
from tests.support.html_pages import HtmlPage
from tests.support.registries.in_process import Api, create, serving

_SCHEMAS = ("schemagroups/my-schemagroup/schemas",)
ADMIN_PAGES = ("links", "keys", "grants", "settings")
FORM = {"content-type": "application/x-www-form-urlencoded", "sec-fetch-site": "same-origin"}


@pytest.fixture
def empty(sqlite_url: str) -> Iterator[Api]:
    create(sqlite_url, default_source())
    with serving(sqlite_url) as api:
        yield api


@pytest.fixture
def filled(api: Api) -> Api:
    api.done("PUT", "/dirs/d", {"files": {"f": {"name": "<b>bold</b>"}}})
    return api


def commands(page: str) -> list[list[str]]:
    """The commands that a page shows."""
    return [shlex.split(html.unescape(text)) for text in re.findall("<code>(curl .*?)</code>", page, re.DOTALL)]


def run(api: Api, command: list[str]) -> int:
    """Sends the request of a command; the status of the response."""
    method = command[command.index("-X") + 1]
    url = next(word for word in command if word.startswith("http"))
    path = urlsplit(url).path.removeprefix("/r")
    return api.send(method, path, json.loads(command[command.index("-d") + 1])).status_code


def test_an_empty_registry_says_how_to_begin(empty: Api) -> None:
    """UI-28, UI-65: an empty registry shows a working command for each Group type; so does each empty collection."""
    page = empty.send("GET", "/ui/").text
    assert "This registry is empty" in page
    found = commands(page)
    assert len(found) == 3 and [run(empty, command) for command in found] == [201] * 3
    assert "This registry is empty" not in empty.send("GET", "/ui/").text
    for path in ("endpoints/my-endpoint/messages", "messagegroups/my-messagegroup/messages", *_SCHEMAS):
        (command,) = commands(empty.send("GET", f"/ui/explore/{path}").text)
        assert run(empty, command) == 201, command


def test_commands_are_quoted(sqlite_url: str) -> None:
    """UI-65: values of the model stay within the words of a command."""
    kinds = ["a'; touch /tmp/made #", "b"]
    kind = {"type": "string", "enum": kinds, "required": True}
    create(sqlite_url, {"groups": {"dirs": {"singular": "dir", "attributes": {"kind": kind}}}})
    with serving(sqlite_url) as api:
        (command,) = commands(api.send("GET", "/ui/explore/dirs").text)
        assert run(api, command) == 201 and api.get("/dirs/my-dir")["kind"] == kinds[0]


@pytest.mark.parametrize(
    ("path", "status", "heading"),
    [
        ("/ui/explore/dirs/none", 404, "Not found"),
        ("/ui/explore/none", 404, "Not found"),
        ("/ui/nothing", 404, "Not found"),
        ("/ui/explore/dirs/d%2Ff", 404, "Not found"),
        ("/ui/explore/dirs?limit=501", 400, "Bad request"),
        ("/ui/explore/dirs?filter=((", 400, "dirs"),
        ("/ui/?asof=never", 400, "Bad request"),
        ("/ui/edit/dirs/d?asof=3", 400, "Bad request"),
        ("/ui/restore/dirs/d", 400, "Bad request"),
        ("/ui/?asofposition=1&shownposition=2&asoftime=2026-01-01T00:00:00&showntime=", 400, "Bad request"),
    ],
)
def test_problems_are_pages(filled: Api, path: str, status: int, heading: str) -> None:
    """UI-27: the page of a problem has the API's status, an alert, and a link named after the problem's type."""
    answer = filled.send("GET", path)
    assert answer.status_code == status and f"<h1><bdi>{heading}</bdi></h1>" in answer.text
    (type,) = set(re.findall(r'href="http://h/r/-/docs#(\w+)"', answer.text))
    assert f">{type}</a>" in answer.text and 'role="alert"' in answer.text


@pytest.mark.parametrize(("path", "has_past"), [("explore/dirs/none", True), ("subscriptions/none", False)])
def test_what_may_be_there_in_the_past(api: Api, path: str, has_past: bool) -> None:
    """UI-27, UI-38: the page of what is not there names `asof` only where it takes it."""
    text = show(api, path, status=404).main.text
    assert "Check the path" in text and ("?asof=" in text) == has_past


@pytest.mark.parametrize("id", ["%2f", "", "$details", "%24details", "x%2fdeadletters%2f5"])
def test_what_is_no_id_has_no_page(filled: Api, id: str) -> None:
    """UI-27: a page puts ids into paths of the API, so other segments lead to paths that mean something else."""
    pages = (
        "subscriptions/{}/edit",
        "subscriptions/{}/delete",
        "links/{}/repair",
        "keys/{}/revoke",
        "grants/{}/revoke",
    )
    for page in pages:
        answer = filled.send("GET", f"/ui/{page.format(id)}")
        assert answer.status_code == 404 and "api_not_found" in answer.text, page


def test_ids_are_one_segment() -> None:
    """UI-27: ids are one segment; the xid of an entity is all that follow."""
    for segment in ("/", "", "x/deadletters/5", "x$details", "$details"):
        for template in ("subscriptions/{}", "interactions/{}", "links/{}", "subscriptions/x/discard/{}"):
            assert PAGES.find([segment if each == "{}" else each for each in template.split("/")]) is None
    for path in ("explore/dirs/d/files/f", "edit/dirs/d/files", "subscriptions/x/discard/5", "interactions/$detail"):
        assert PAGES.find(path.split("/")) is not None, path


@pytest.mark.parametrize(
    ("query", "location"),
    [
        ("asofposition=2&shownposition=5&asoftime=t&showntime=t", "?asof=2"),
        ("asofposition=5&shownposition=5&asoftime=2026-01-02T03:04&showntime=x", "?asof=2026-01-02T03:04:00Z"),
        ("asofposition=5&shownposition=5&asoftime=t&showntime=t", ""),
        ("asofposition=5&shownposition=5&asoftime=t&showntime=t&asof=3", "?asof=3"),
        ("asofposition=&shownposition=5&asof=5", ""),
        ("limit=7&asofposition=2&shownposition=5&cursor=x&saved=y", "?limit=7&asof=2"),
        ("asofposition=2%0d%0aset-cookie:x&shownposition=5", "?asof=2%0D%0Aset-cookie:x"),
    ],
)
def test_the_form_of_the_moment(filled: Api, query: str, location: str) -> None:
    """UI-36: the field that was changed sets the moment; parameters that belong to the old moment are dropped."""
    answer = filled.send("GET", f"/ui/explore/dirs?{query}")
    assert (answer.status_code, answer.headers["location"]) == (303, f"/r/ui/explore/dirs{location}")


@pytest.mark.parametrize("path", ["", "/dirs/d", "/dirs/d/files/f", "/dirs/d/files/f/versions/1"])
def test_what_a_page_of_the_past_restores(sqlite_url: str, path: str) -> None:
    """UI-37, UI-46: the link leads to what a restore of that moment would record, also of what is deleted now."""
    create(sqlite_url)
    with serving(sqlite_url, tokens=json.dumps(TOKENS)) as api:
        root = {"authorization": "Bearer root"}
        api.done("PUT", "/dirs/d", {"files": {"f": {"versionid": "1"}}}, **root)
        position = api.done("GET", "/-/log/head", **root).json()["position"]
        for change in ("PATCH", "DELETE"):
            api.done(change, "/dirs/d", {"name": "later"} if change == "PATCH" else None, **root)
            page = show(api, f"explore/{path.strip('/')}?asof={position}")
            assert page.links["Restore"] == f"/r/ui/restore/{path.strip('/')}?asof={position}"
        assert show(api, page.links["Restore"].partition("/ui/")[2]).buttons == ["Restore"]
        assert "Restore" not in show(api, f"explore/{path.strip('/')}?asof={position}", by="reader").links
        assert "Restore" not in show(api, "explore/").links


FORMS = ("new/dirs", "new/dirs/d/files", "new/dirs/d/files/f/versions", "edit", "edit/dirs/d", "delete/dirs/d/files/f")
PLACES = {"one": {"/dirs/d": "writer"}, "some": {"/d*/t-*": "writer"}, "none": {"/dirs/d": "reader"}}


def test_who_gets_a_form(sqlite_url: str) -> None:
    """UI-17: others get 403 before they type something, and not after."""
    create(sqlite_url)
    tokens = TOKENS | {name: {"name": name, "role": "reader", "groups": groups} for name, groups in PLACES.items()}
    with serving(sqlite_url, tokens=json.dumps(tokens)) as api:
        api.done("PUT", "/dirs/d", {"files": {"f": {}}}, authorization="Bearer root")
        shown = {
            name: {
                path
                for path in FORMS
                if api.send("GET", f"/ui/{path}", authorization=f"Bearer {name}").status_code == 200
            }
            for name in (*PLACES, "reader", "part")
        }
        assert show(api, "edit/dirs/d", by="reader", status=403).heading == "Not allowed"
    all_but_root = {path for path in FORMS if path != "edit"}
    assert shown == {"one": all_but_root, "some": {"new/dirs"}, "none": set(), "reader": set(), "part": {*FORMS}}


def test_a_search_without_a_query_shows_nothing_of_the_api(filled: Api) -> None:
    """UI-34: the API has no answer without a query, so there is no link to one."""
    page = filled.send("GET", "/ui/search").text
    assert "Raw JSON" not in page and "Copy as curl" not in page and "API documentation" in page
    found = filled.send("GET", "/ui/search?q=bold").text
    assert re.search(r'href="http://h/r/-/search\?q=bold">Raw JSON</a>', found) and "Copy as curl" in found


def test_links_keep_the_moment_where_there_is_one(filled: Api) -> None:
    """UI-34, UI-37: links keep the moment, also the link to the API; pages that write have no moment."""
    page = filled.send("GET", "/ui/explore/dirs?asof=5").text
    assert 'href="/r/ui/explore/?asof=5"' in page
    assert re.search(r'href="http://h/r/dirs\?[^"]*asof=5">Raw JSON</a>', page)
    assert "Shows the present" in filled.send("GET", "/ui/edit/dirs/d").text


def test_values_are_text(filled: Api) -> None:
    """UI-29."""
    for path in ("/ui/explore/dirs/d/files", "/ui/explore/dirs/d/files/f", "/ui/edit/dirs/d/files/f"):
        text = filled.send("GET", path).text
        assert "&lt;b&gt;bold" in text and "<b>bold" not in text


def test_names_that_nobody_would_see(empty: Api) -> None:
    """UI-69: a link to a subject can be seen, also where the name of the subject cannot."""
    names = {" ": '" "', "b ": '"b "', "\u200b": '"\\u200b"', "a b": "a b", "ß": "ß"}
    for name in names:
        path = f"/compat/confluent/subjects/{quote(name, safe='')}/versions"
        empty.done("POST", path, {"schema": '"string"'})
    links = show(empty, "confluent").links
    assert set(names.values()) <= links.keys() and "" not in links


def test_posts_come_from_own_pages(filled: Api) -> None:
    """ACC-84: a form on a page of another site writes nothing."""
    body = urlencode({"form action": "save", "dirid": "evil"}).encode()
    for sender in ({"sec-fetch-site": "cross-site"}, {"origin": "https://evil.example"}):
        headers = {"content-type": FORM["content-type"], **sender}
        assert filled.send("POST", "/ui/new/dirs", body, **headers).status_code == 403
    assert list(filled.get("/dirs")) == ["d"]


def test_an_epoch_of_another_change_is_a_conflict(filled: Api) -> None:
    """UI-84, UI-85: an entity that was changed since the page was loaded is neither overwritten nor deleted."""
    position = filled.get("/-/log/head")["position"]
    filled.done("PATCH", "/dirs/d", {"name": "theirs"})
    fields = {"form action": "save", "name": "mine", "loaded epoch": "1", "loaded position": str(position)}
    answer = filled.send("POST", "/ui/edit/dirs/d", urlencode(fields).encode(), **FORM)
    assert answer.status_code == 409 and "<h1><bdi>Conflict</bdi></h1>" in answer.text
    deletion = urlencode({"epoch": "1", "confirm": "d"}).encode()
    answer = filled.send("POST", "/ui/delete/dirs/d", deletion, **FORM)
    assert answer.status_code == 400 and filled.get("/dirs/d")["name"] == "theirs"


@pytest.mark.parametrize(
    ("base", "theirs", "yours", "merged"),
    [
        ("a\nb\nc\n", "A\nb\nc\n", "a\nb\nC\n", "A\nb\nC\n"),
        ("a\nb\nc\n", "a\nb\n", "a\nb\nc\nd\n", None),
        ("a\nb\nc\nd\n", "a\nc\nd\n", "a\nb\nc\nd\ne\n", "a\nc\nd\ne\n"),
        ("a\n", "b\n", "c\n", None),
        ("a\n", "b\n", "b\n", "b\n"),
        ("", "x\n", "", "x\n"),
        ("a\nb\nc", "a\nb\nc\n", "A\nb\nc", "A\nb\nc\n"),
    ],
)
def test_lines_merge(base: str, theirs: str, yours: str, merged: str | None) -> None:
    """UI-84: if both sides change the same or neighbouring lines, there is no merge, and a person has to choose."""
    assert merge_lines(base, theirs, yours) == merge_lines(base, yours, theirs) == merged


def test_a_merge_does_not_take_long() -> None:
    """UI-18: the work for the page of a conflict is bounded, whatever the lines are."""
    random = Random(1)
    base, theirs, yours = ("".join(random.choices(["a\n", "b\n", "c\n", "d\n"], k=5_000)) for _ in range(3))
    started = thread_time()
    assert merge_lines(base, theirs, yours) is None
    assert thread_time() - started < 1


@pytest.mark.parametrize(
    "text", ['{"a":[],"b":{},"c":"x{,}:\\"","d":[1.0,1e400,{"e":null}]}', "[]", '"text"', "<script>&", "no { json"]
)
def test_highlighting_changes_nothing_but_white_space(text: str) -> None:
    """UI-74: apart from white space, a page shows the stored text."""
    shown = html.unescape(re.sub("<[^>]*>", "", highlight(text, "application/json", "").html))
    assert re.sub(r"\s", "", shown) == re.sub(r"\s", "", text)


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "https://a.example/x"])
def test_documents_elsewhere(api: Api, url: str) -> None:
    """UI-74, ACC-104: a document elsewhere is shown by its URL, which is a link only if it cannot do harm."""
    api.done("PUT", "/dirs/d/files/f$details", {"fileurl": url})
    region = show(api, "explore/dirs/d/files/f").region("Document")
    assert region.text == f"Document The document is elsewhere: {url}"
    assert [each.attributes["href"] for each in region.all("a")] == [url] * url.startswith("https:")
    form = show(api, "edit/dirs/d/files/f").main
    assert f"The document is elsewhere: {url}" in form.text and f'href="{url}"' not in form.text
    api.done("POST", "/dirs/d/files/f/versions", {"2": {"file": "here"}})
    compared = show(api, "compare/dirs/d/files/f?left=1&right=2").main.text
    assert "The document of Version 1 is stored elsewhere." in compared


@pytest.mark.parametrize("meta", [{"owner": "y"}, "x", 5, []])
@pytest.mark.parametrize("name", ["n", "n2"])
def test_meta_of_a_group_is_an_extension(empty: Api, meta: Any, name: str) -> None:
    """UI-73, UI-80: only Resources have a meta; that of a Group is stored and shown as it was typed."""
    empty.done("PUT", "/schemagroups/g", {"name": "n", "meta": {"owner": "x"}})
    assert json.loads(show(empty, "edit/schemagroups/g").fields["Other attributes"].text) == {"meta": {"owner": "x"}}
    assert save(empty, "schemagroups/g", name=name, others={"meta": meta}).status_code == 303
    stored = empty.get("/schemagroups/g")
    assert (stored["name"], stored["meta"]) == (name, meta)
    assert "meta" in [each.text for each in show(empty, "explore/schemagroups/g").region("Attributes").all("dt")]
    assert show(empty, "explore/schemagroups").table("schemagroups")[0][0] == "g"


@pytest.mark.parametrize("path", ["", "dirs/d/files/f", "dirs/d/files/f/versions/1"])
@pytest.mark.parametrize("meta", [{"owner": "y"}, "x", []])
def test_where_meta_is_no_extension(api: Api, path: str, meta: Any) -> None:
    """UI-81: a meta among the extensions is refused at their field, and not written to the meta of a Resource."""
    api.done("PUT", "/dirs/d/files/f", b"x")
    answer = save(api, path, others={"meta": meta})
    assert answer.status_code == 400
    field = HtmlPage(answer.text).fields["Other attributes"]
    assert field.attributes["aria-invalid"] == "true" and json.loads(field.text) == {"meta": meta}


def test_a_null_meta_among_extensions(api: Api) -> None:
    """UI-81: it would change nothing, so it is refused as well, not left out."""
    api.done("PUT", "/dirs/d/files/f", b"x")
    assert save(api, "dirs/d/files/f", others={"meta": None}).status_code == 400


def test_attributes_of_a_meta(sqlite_url: str) -> None:
    """UI-80, UI-81: the group "Meta" has what the model adds to metas, and a field for extensions where it has "*"."""
    attributes = {
        "owner": {"type": "string", "required": True},
        "level": {"type": "integer", "enum": [1, 2]},
        "seen": {"type": "string", "readonly": True},
    }
    types = {
        "files": {"singular": "file", "metaattributes": attributes | {"*": {"type": "any"}}},
        "notes": {"singular": "note", "metaattributes": attributes},
    }
    create(sqlite_url, {"groups": {"dirs": {"singular": "dir", "resources": types}}})
    with serving(sqlite_url) as api:
        api.done("PUT", "/dirs/d", {})
        assert "Other meta attributes" not in show(api, "new/dirs/d/notes").fields
        form = show(api, "new/dirs/d/files")
        assert {"owner", "level", "Other meta attributes"} <= {*form.fields} and "seen" not in form.fields
        assert "required" in form.fields["owner"].attributes
        fields = {"fileid": "f", "meta.owner": "ann", "meta.level": "2", "meta.other attributes": '{"a": [1]}'}
        assert submit(api, "new/dirs/d/files", fields).status_code == 303
        meta = api.get("/dirs/d/files/f/meta")
        assert (meta["owner"], meta["level"], meta["a"]) == ("ann", 2, [1]), "the level is a number"
        form = show(api, "edit/dirs/d/files/f")
        assert json.loads(form.fields["Other meta attributes"].text) == {"a": [1]}
        position = str(api.get("/-/log/head")["position"])
        state = {"loaded position": position, "loaded epoch": "1", "loaded meta epoch": str(meta["epoch"])}
        kept = {"meta.owner": "ben", "meta.level": "2", "meta.defaultversionid": "1"}
        refused = submit(api, "edit/dirs/d/files/f", {**state, **kept, "meta.other attributes": "[1]"})
        assert HtmlPage(refused.text).fields["Other meta attributes"].attributes["aria-invalid"] == "true"
        fields = {**state, **kept, "meta.other attributes": '{"b": 1}'}
        assert submit(api, "edit/dirs/d/files/f", fields).status_code == 303
        meta = api.get("/dirs/d/files/f/meta")
        assert (meta["owner"], meta["level"], meta["b"], "a" in meta) == ("ben", 2, 1, False)


def submit(api: Api, path: str, fields: Mapping[str, str]) -> httpx.Response:
    """Saves a form that has these fields."""
    return api.send("POST", f"/ui/{path}", urlencode({"form action": "save", **fields}).encode(), **FORM)


def test_attributes_named_as_other_entities_have_them(sqlite_url: str) -> None:
    """UI-80: `model` is special in the registry alone, `meta` and `versions` in Resources alone."""
    names = ("model", "meta", "versions")
    attributes = {name: {"type": "string"} for name in names}
    create(sqlite_url, {"groups": {"cars": {"singular": "car", "attributes": attributes}}})
    with serving(sqlite_url) as api:
        assert {*names} <= {*show(api, "new/cars").fields}
        assert not {*names} & {*show(api, "edit/").fields}


def save(api: Api, path: str, *, others: Any, name: str = "") -> httpx.Response:
    """Saves the form of an entity with a name and extensions."""
    epoch = api.get(f"/{path}" + "$details" * ("/files/" in path))["epoch"]
    position = api.get("/-/log/head")["position"]
    fields = {"name": name, "other attributes": json.dumps(others), "form action": "save", "loaded meta epoch": "1"}
    body = urlencode({**fields, "loaded epoch": str(epoch), "loaded position": str(position)}).encode()
    return api.send("POST", f"/ui/edit/{path}", body, **FORM)


@pytest.mark.parametrize(
    ("roles", "shown"),
    [
        ({"role": "admin"}, ["Replication", "API keys", "Grants", "Settings"]),
        ({"groups": {"/dirs/d": "admin"}}, ["API keys", "Grants"]),
        ({"role": "writer", "groups": {"/dirs/d": "writer"}}, []),
    ],
)
def test_links_for_administrators(sqlite_url: str, roles: dict[str, Any], shown: list[str]) -> None:
    """UI-17, UI-30: the navigation links to the pages that the caller may use, and each of them opens."""
    create(sqlite_url)
    with serving(sqlite_url, tokens=json.dumps({"t": {"name": "t", **roles}}), api_keys=True) as api:
        page = api.send("GET", "/ui/", authorization="Bearer t").text
        (navigation,) = re.findall(r'<nav class="main".*?</nav>', page, re.DOTALL)
        links = dict(re.findall(r'<a href="[^"]*(/ui/[^"]*)"[^>]*>(.*?)</a>', navigation))
        for_administrators = [text for path, text in links.items() if path.rpartition("/")[2] in ADMIN_PAGES]
        assert for_administrators == shown
        for path, text in links.items():
            if text in shown:
                assert api.send("GET", path, authorization="Bearer t").status_code == 200
