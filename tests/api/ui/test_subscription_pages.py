"""The pages of subscriptions, in the order of their use (UI-53 to 55, UI-64, UI-110 to 112)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from annals.projections.outgoing.destination_guard import DestinationGuard
from tests.api.ui.pages import TOKENS, follow, show, submit
from tests.support.html_pages import HtmlPage, sent_values
from tests.support.polling import until
from tests.support.registries.in_process import Api, create, serving
from tests.support.subscribing import KEY
from tests.support.webhooks import Webhooks, webhooks

SECRET = "marker-of-a-secret"
FIELDS = {
    "protocol": "HTTP",
    "types": "io.xregistry.group.created\n",
    "filters": '[{"prefix": {"subject": "/dirs/"}}]',
    "settings": '{"retry": {"maxattempts": 1}}',
    "start": "latest",
}


@pytest.fixture
def sinks() -> Iterator[Webhooks]:
    with webhooks() as sinks:
        yield sinks


@pytest.fixture
def api(sqlite_url: str, sinks: Webhooks) -> Iterator[Api]:
    """A registry that delivers to this machine."""
    create(sqlite_url)
    ports = {"delivers": True, "resolver": DestinationGuard("127.0.0.1", allows_plaintext=True)}
    options: dict[str, Any] = {"sinks_validation": "off", "sinks_plaintext": True, "master_key": KEY}
    with serving(sqlite_url, ports=ports, tokens=json.dumps(TOKENS), **options) as api:
        yield api


def put(api: Api, *ids: str) -> None:
    for id in ids:
        api.done("PUT", f"/dirs/{id}", {}, authorization="Bearer root")


def created(api: Api, sink: str, **fields: str) -> str:
    """Creates a subscription with the form; its id."""
    answer = submit(api, "subscriptions/new", sink=sink, **(FIELDS | fields))
    page = follow(api, answer)
    assert page.statuses == ["Saved. 1 events recorded. Interaction"]
    return page.heading.removeprefix("Subscription ")


def test_an_empty_list_says_how_to_begin(api: Api) -> None:
    page = show(api, "subscriptions")
    assert page.heading == "Subscriptions"
    assert page.links["Create subscription"].endswith("/ui/subscriptions/new")
    assert "curl" in page.main.text
    assert "Create subscription" not in show(api, "subscriptions", by="reader").links


def test_a_subscription_and_its_deliveries(api: Api, sinks: Webhooks) -> None:
    sinks.answer = lambda path, event: 400 if event["subject"] == "/dirs/bad" else 204
    credential = json.dumps({"credentialtype": "PLAIN", "identifier": "u", "secret": SECRET})
    id = created(api, f"{sinks.url}/s?key={SECRET}", credential=credential)
    put(api, "good", "bad")
    until(lambda: len(show(api, f"subscriptions/{id}").table("Dead letters")[0]) > 1)
    page = show(api, f"subscriptions/{id}")
    assert SECRET not in page.main.text
    assert page.heading == f"Subscription {id}"
    outcomes = {row[1].split()[0]: (row[2], row[3]) for row in page.table("Attempts")}
    assert outcomes == {"/dirs/good": ("delivered", ""), "/dirs/bad": ("rejected", "400")}
    ((sequence, event, reason, attempts, *_),) = page.table("Dead letters")
    assert event.startswith("/dirs/bad")
    assert attempts == "1"
    assert f"Redeliver {sequence}" in page.buttons
    (row,) = show(api, "subscriptions").table("Subscriptions")
    assert row[:4] == [id, f"{sinks.url}/s", "HTTP", "active"]
    assert row[5] == "1"

    sinks.answer = lambda path, event: 204
    follow(api, submit(api, f"subscriptions/{id}", action=f"redeliver:{sequence}"))
    until(lambda: show(api, f"subscriptions/{id}").table("Dead letters") == [["None."]])
    assert sinks.subjects(f"/s?key={SECRET}").count("/dirs/bad") == 2
    assert reason.startswith("rejected")


def test_the_last_attempt_is_no_retry(api: Api, sinks: Webhooks) -> None:
    """UI-55, UI-111: only an attempt that another one follows is shown as `retry`."""
    sinks.answer = lambda path, event: 500
    id = created(api, f"{sinks.url}/s", settings='{"retry": {"maxattempts": 2, "initialdelay": 0.1}}')
    put(api, "d")
    until(lambda: len(show(api, f"subscriptions/{id}").table("Dead letters")[0]) > 1)
    assert [row[2:4] for row in show(api, f"subscriptions/{id}").table("Attempts")] == [
        ["failed", "500"],
        ["retry", "500"],
    ]


def test_pause_and_resume(api: Api, sinks: Webhooks) -> None:
    id = created(api, f"{sinks.url}/s")
    page = follow(api, submit(api, f"subscriptions/{id}", action="pause"))
    assert "Resume" in page.buttons
    assert "Pause" not in page.buttons
    put(api, "d")
    assert "Pause" in follow(api, submit(api, f"subscriptions/{id}", action="resume")).buttons
    until(lambda: "/dirs/d" in sinks.subjects("/s"))
    assert submit(api, f"subscriptions/{id}", action="burn").status_code == 400


def test_a_replay_is_counted_first(api: Api, sinks: Webhooks) -> None:
    """UI-112."""
    id = created(api, f"{sinks.url}/s")
    put(api, "a", "b")
    until(lambda: len(sinks.subjects("/s")) == 2)
    page = show(api, f"subscriptions/{id}")
    assert not any(text.startswith("Replay ") for text in page.buttons)
    assert {"From position", "To position"} <= page.fields.keys()
    page = show(api, f"subscriptions/{id}?from=1&to=")
    assert page.statuses == ["2 events will be sent again."]
    assert "The first: io.xregistry.group.created /dirs/a" in page.main.text
    assert "The last: io.xregistry.group.created /dirs/b" in page.main.text
    assert "Replay 2 events" in page.buttons
    follow(api, submit(api, f"subscriptions/{id}", action="replay", from_="1", to=""))
    until(lambda: sorted(sinks.subjects("/s")) == ["/dirs/a", "/dirs/a", "/dirs/b", "/dirs/b"])
    page = show(api, f"subscriptions/{id}?from=x", status=400)
    assert "From position" in page.statuses[0]


def test_a_preview_needs_no_sink(api: Api) -> None:
    """UI-110."""
    put(api, "a", "b")
    answer = submit(api, "subscriptions/new", preview="on", **FIELDS)
    assert answer.status_code == 200
    page = HtmlPage(answer.text)
    assert page.statuses[0].startswith("2 of ")
    assert [row[2] for row in page.table("Matching events")] == ["/dirs/a", "/dirs/b"]
    wrong = FIELDS | {"filters": '[{"sql": "missing = 1"}]'}
    assert (
        "missing = 1" in HtmlPage(submit(api, "subscriptions/new", preview="on", **wrong).text).region("Preview").text
    )
    assert show(api, "subscriptions").table("Subscriptions") == [["None."]]


REFUSED = {
    "Filters": {"filters": "{"},
    "Sink": {"sink": "ftp://x"},
    "Settings": {"settings": '{"unknown": 1}'},
    "Start": {"start": "tomorrow"},
    "Credential": {"credential": "[]"},
}


@pytest.mark.parametrize("label", REFUSED)
def test_a_refusal_is_at_its_field_and_keeps_the_input(api: Api, sinks: Webhooks, label: str) -> None:
    """UI-26, UI-81."""
    answer = submit(api, "subscriptions/new", **{"sink": f"{sinks.url}/s", **FIELDS, **REFUSED[label]})
    assert answer.status_code == 400
    page = HtmlPage(answer.text)
    field = page.fields[label]
    assert field.attributes["aria-invalid"] == "true"
    assert page.links[label] == f"#{field.attributes['id']}"
    assert "group.created" in page.fields["Types"].text


def test_an_edit_keeps_what_the_form_does_not_show(api: Api, sinks: Webhooks) -> None:
    credential = json.dumps({"credentialtype": "PLAIN", "identifier": "u", "secret": SECRET})
    id = created(api, f"{sinks.url}/s", credential=credential)
    page = show(api, f"subscriptions/{id}/edit")
    assert page.heading == "Edit subscription"
    form = next(page.main.all("form"))
    tag = next(each.attributes["value"] for each in form.all("input") if each.attributes.get("name") == "tag")
    assert "value" not in page.fields["Credential"].attributes
    changed = {**FIELDS, "types": "", "sink": f"{sinks.url}/t", "tag": tag, "credential": ""}
    follow(api, submit(api, f"subscriptions/{id}/edit", **changed))
    put(api, "d")
    until(lambda: "/dirs/d" in sinks.subjects("/t"))
    stale = submit(api, f"subscriptions/{id}/edit", **changed)
    assert stale.status_code == 412
    assert HtmlPage(stale.text).statuses


XREGISTRY = "io.xregistry.group.created"
SCHEMAREGISTRY = "io.cloudevents.schemaregistry.updated.v1"
MESSAGECATALOG = "io.cloudevents.messagecatalog.updated.v1"


@pytest.mark.parametrize(
    ("chosen", "before", "after", "families"),
    [
        (None, "", SCHEMAREGISTRY, ["schemaregistry"]),
        (None, SCHEMAREGISTRY, XREGISTRY, ["xregistry"]),
        (None, SCHEMAREGISTRY, "", ["xregistry"]),
        (None, XREGISTRY, f"{SCHEMAREGISTRY}\n{MESSAGECATALOG}", ["schemaregistry", "messagecatalog"]),
        (["schemaregistry", "messagecatalog"], "", SCHEMAREGISTRY, ["schemaregistry", "messagecatalog"]),
        (["schemaregistry"], "", "", ["schemaregistry"]),
        (["schemaregistry"], "", XREGISTRY, ["xregistry"]),
    ],
)
def test_an_edit_of_types_changes_the_families(
    api: Api, sinks: Webhooks, chosen: list[str] | None, before: str, after: str, families: list[str]
) -> None:
    """SUB-111, UI-54: default families follow new types; chosen ones stay if the new types are of them."""
    id = created(api, f"{sinks.url}/s", types=before)
    if chosen is not None:
        change(api, id, config={"families": chosen})
    path = f"subscriptions/{id}/edit"
    follow(api, submit(api, path, **(loaded(show(api, path)) | {"types": after, "settings": ""})))
    stored = api.done("GET", f"/subscriptions/{id}", authorization="Bearer root").json()
    assert stored["config"] == {"families": families, "startposition": "latest"}
    assert stored.get("types", []) == after.split()


def loaded(page: HtmlPage) -> dict[str, str]:
    """The form of a page as a browser sends it if nobody touches it."""
    (form,) = (each for each in page.main.all("form") if each.attributes["method"] == "post")
    return {**sent_values(form), "protocol": "HTTP"}


def change(api: Api, id: str, **members: Any) -> None:
    """Changes a subscription as another client does."""
    stored = api.done("GET", f"/subscriptions/{id}", authorization="Bearer root").json()
    body = {name: value for name, value in stored.items() if name not in ("id", "status")} | members
    api.done("PUT", f"/subscriptions/{id}", body, authorization="Bearer root")


@pytest.mark.parametrize("first", [{"preview": "on"}, {"filters": "{"}, {"sink": "ftp://x"}])
def test_no_preview_or_refusal_hides_a_change_of_others(api: Api, sinks: Webhooks, first: dict[str, str]) -> None:
    """UI-26, UI-84: the form keeps the state that it was loaded with, until it shows what is stored now."""
    id = created(api, f"{sinks.url}/s")
    path = f"subscriptions/{id}/edit"
    form = loaded(show(api, path)) | {"types": "mine"}
    change(api, id, types=["theirs"])
    shown = loaded(HtmlPage(submit(api, path, **{**form, **first}).text))
    assert shown["tag"] == form["tag"]
    answer = submit(api, path, **{**form, "tag": shown["tag"]})
    page = HtmlPage(answer.text)
    assert answer.status_code == 412 and page.heading == "Conflict"
    assert page.statuses[0].startswith("It has been changed since the form was loaded.")
    assert "ETag" not in page.statuses[0] and "/subscriptions" not in page.statuses[0]
    assert page.table("Stored now") == [["Types", "theirs"]]
    assert loaded(page)["types"] == "mine" and "theirs" in str(show(api, f"subscriptions/{id}").main.text)
    follow(api, submit(api, path, **loaded(page)))
    assert loaded(show(api, path))["types"] == "mine"


CREDENTIAL = json.dumps({"credentialtype": "PLAIN", "identifier": "u", "secret": SECRET})
AGAIN = "Type the credential again: a page does not repeat it."


def test_a_credential_has_to_be_typed_again(api: Api, sinks: Webhooks) -> None:
    """UI-54, UI-81: no page repeats it, and each page says so until it is sent again."""
    fields = {**FIELDS, "sink": f"{sinks.url}/s", "credential": CREDENTIAL}
    assert AGAIN not in show(api, "subscriptions/new").main.text
    for again in ({"preview": "on"}, {"filters": "{"}):
        page = HtmlPage(submit(api, "subscriptions/new", **{**fields, **again}).text)
        assert AGAIN in page.main.text and SECRET not in page.main.text
        field = page.fields["Credential"]
        assert "required" in field.attributes
        assert "credential-again" in field.attributes["aria-describedby"].split()
        page = HtmlPage(submit(api, "subscriptions/new", **{**loaded(page), "preview": "on"}).text)
        assert AGAIN in page.main.text and "required" in page.fields["Credential"].attributes
    (preview,) = (each for each in page.main.all("button") if each.text == "Preview over the past")
    assert "formnovalidate" in preview.attributes

    id = created(api, f"{sinks.url}/s")
    page = HtmlPage(submit(api, f"subscriptions/{id}/edit", **{**fields, "preview": "on"}).text)
    assert AGAIN in page.main.text and "required" not in page.fields["Credential"].attributes
    assert AGAIN not in show(api, f"subscriptions/{id}/edit").main.text


def test_discard_and_delete_say_first_what_happens(api: Api, sinks: Webhooks) -> None:
    """UI-39."""
    sinks.answer = lambda path, event: 400
    id = created(api, f"{sinks.url}/s")
    put(api, "d")
    until(lambda: len(show(api, f"subscriptions/{id}").table("Dead letters")[0]) > 1)
    sequence = show(api, f"subscriptions/{id}").table("Dead letters")[0][0]
    page = show(api, show(api, f"subscriptions/{id}").links[f"Discard {sequence}"].partition("/ui/")[2])
    assert page.heading.startswith(f"Discard {sequence}")
    assert page.buttons == ["Discard"]
    assert "1 dead letter is dropped" in page.main.text
    assert page.links["Cancel"].endswith(f"/ui/subscriptions/{id}")
    page = follow(api, submit(api, f"subscriptions/{id}/discard/{sequence}"))
    assert page.table("Dead letters") == [["None."]]
    page = show(api, f"subscriptions/{id}/delete")
    assert page.buttons == ["Delete"]
    assert "0 dead letters" in page.main.text
    assert follow(api, submit(api, f"subscriptions/{id}/delete")).heading == "Subscriptions"
    assert show(api, f"subscriptions/{id}", status=404).heading == "Not found"


def test_others_see_nothing(api: Api, sinks: Webhooks) -> None:
    """UI-17, SUB-911."""
    id = created(api, f"{sinks.url}/s")
    assert show(api, "subscriptions", by="part").table("Subscriptions") == [["None."]]
    assert show(api, f"subscriptions/{id}", by="part", status=404).heading == "Not found"
    assert show(api, "subscriptions/new", by="reader", status=403).heading == "Not allowed"
    assert show(api, f"subscriptions/{id}?asof=3", status=400).heading == "Bad request"
