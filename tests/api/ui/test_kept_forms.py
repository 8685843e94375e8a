"""A form that is sent after its session has ended is restored after the sign-in (UI-87)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import httpx
import pytest

from annals.domain.model.builtin import default_source
from tests.api.ui.pages import TOKENS
from tests.api.ui.test_provider import signed_in
from tests.support.html_pages import Element, HtmlPage, sent_values
from tests.support.oidc_site import Site, running_site
from tests.support.registries.in_process import Api, create, serving

FIELDS: Final = {"form action": "save", "schemagroupid": "g", "name": "typed <before>", "other attributes": ""}
FILE: Final = ("<b>order</b>.avsc", b"{}", "application/json")


@pytest.fixture
def api(sqlite_url: str) -> Iterator[Api]:
    create(sqlite_url, default_source())
    with serving(sqlite_url, tokens=json.dumps(TOKENS), api_keys=True) as api:
        api.done("PUT", "/schemagroups/g", {}, authorization="Bearer root")
        yield api


def sent(api: Api, path: str, fields: Mapping[str, str], file: tuple[str, bytes, str] | None, by: str = "") -> HtmlPage:
    headers = {"authorization": f"Bearer {by}"} if by else {}
    api.client.cookies.delete("annals")
    files = {"document file": file or ("", b"", "application/octet-stream")}
    return HtmlPage(api.runner.run(api.client.post(path, data=fields, files=files, headers=headers)).text)


def hidden_fields(form: Element) -> dict[str, str]:
    """The values that a form sends without any input of a person."""
    found = {each.attributes["name"]: each.text for each in form.all("textarea")}
    return found | {each.attributes["name"]: each.attributes.get("value", "") for each in form.all("input")}


def test_the_name_of_a_chosen_file(api: Api) -> None:
    """UI-81, UI-87: a page cannot choose a file, so the form names the one chosen before, also after a refusal."""
    path = "/ui/new/schemagroups/g/schemas"
    fields = {"form action": "save", "schemaid": "order", "labels": "{"}
    api.runner.run(api.client.post("/ui/login", data={"token": "root"}))
    page = sent(api, path, fields, FILE)
    assert page.heading == "Sign in"
    kept = hidden_fields(next(page.main.all("form")))
    again = sent(api, path, {name: text for name, text in kept.items() if name.startswith("kept ")}, None, "root")
    for shown in (again, sent(api, path, fields, FILE, "root")):
        assert shown.heading == "Create schema" and shown.fields["labels"].text == "{"
        assert "The file <b>order</b>.avsc was chosen before." in shown.main.text
        field = shown.fields["Document file"].attributes
        assert field["aria-describedby"] == "document-file-text"
    assert "chosen before" not in sent(api, path, fields, None, "root").main.text


SECRET: Final = "marker-of-a-secret"
SUBSCRIPTION: Final = {
    "sink": "https://example.com/events",
    "types": "io.xregistry.group.created",
    "filters": "[",
    "settings": '{"retry": {"maxattempts": 1}}',
    "start": "earliest",
}


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("subscriptions/new", SUBSCRIPTION),
        ("subscriptions/{id}/edit", SUBSCRIPTION | {"tag": '"old"'}),
        (
            "keys",
            {"name": "build", "role": "writer", "groups": "/schemagroups/g=reader", "expires": "2026-02-01T00:00"},
        ),
        ("grants", {"subject": "caller:x", "at": "/schemagroups/g", "role": "writer"}),
    ],
)
def test_other_forms_are_kept_too(api: Api, path: str, fields: dict[str, str]) -> None:
    """UI-54, UI-87: the form is there again, nothing is written, and no page has the credential."""
    body = {"sink": "https://example.com/old", "protocol": "HTTP"}
    id = api.done("POST", "/subscriptions", body, authorization="Bearer root").json()["id"]
    before = api.done("GET", "/-/interactions", authorization="Bearer root").json()
    path = f"/ui/{path.format(id=id)}"
    api.runner.run(api.client.post("/ui/login", data={"token": "root"}))
    page = sent(api, path, fields | ({"credential": SECRET} if "sink" in fields else {}), None)
    assert page.heading == "Sign in" and page.statuses[0].startswith("The session has ended")
    assert SECRET not in str(page.main)
    kept = hidden_fields(next(page.main.all("form")))
    again = sent(api, path, {name: text for name, text in kept.items() if name.startswith("kept ")}, None, "root")
    (form,) = (each for each in again.main.all("form") if each.attributes["method"] == "post")
    assert (hidden_fields(form) | sent_values(form)).items() >= fields.items()
    assert ("Type the credential again" in again.main.text) == ("sink" in fields)
    assert api.done("GET", "/-/interactions", authorization="Bearer root").json() == before


def test_a_form_of_a_browser_without_a_session(api: Api) -> None:
    """ACC-114, UI-87: a page with a long form takes memory, so nothing of it is kept for those who never signed in."""

    def posted(path: str, fields: Mapping[str, str]) -> httpx.Response:
        request = api.client.post(path, data=fields, headers={"sec-fetch-mode": "navigate"})
        return api.runner.run(request)

    fields = {"form action": "save", "name": "<" * 100_000}
    for cookie in ("", "annals-known=.", "annals-known=x.x"):
        api.client.headers["cookie"] = cookie
        assert len(posted("/ui/new/schemagroups", fields).content) < 20_000
        assert len(posted("/ui/login", {"token": "wrong", "kept name": fields["name"]}).content) < 20_000
    api.client.headers["cookie"] = f"annals-known={posted('/ui/login', {'token': 'root'}).cookies['annals-known']}"
    assert len(posted("/ui/new/schemagroups", fields).content) > 100_000


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with running_site(tmp_path_factory.mktemp("site")) as site:
        yield site


@pytest.mark.uses("Node.js")
def test_a_form_after_a_sign_in_at_a_provider(site: Site, tmp_path: Path) -> None:
    """UI-87: the sign-in opens in another tab; the page with the form then continues with the same input."""
    path = f"{site.url}/ui/new/schemagroups"
    browser = signed_in(site)
    session = browser.client.cookies["annals"]
    browser.client.cookies.delete("annals")
    refused = browser.client.post(path, data=FIELDS)
    assert refused.status_code == 401
    page = HtmlPage(refused.text)
    link = next(each for each in page.main.all("a") if each.text == "Sign in with the <office>")
    assert link.attributes["target"] == "_blank" and page.links[link.text].endswith("?next=/ui/new/schemagroups")
    form = next(each for each in page.main.all("form") if "Continue" in each.text)
    browser.client.cookies.set("annals", session)
    headers = {"origin": site.url}
    answer = browser.client.post(site.url + form.attributes["action"], data=hidden_fields(form), headers=headers)
    again = HtmlPage(answer.text)
    assert answer.status_code == 200 and again.heading == "Create schemagroup"
    assert again.fields["name"].attributes["value"] == FIELDS["name"]
    assert again.fields["schemagroupid"].attributes["value"] == "g"
