"""Each page is valid HTML, according to the Nu Html Checker of the W3C.

That checker parses as a browser does and knows the content models, attributes and ARIA roles of the standard; npm's
html-validate checks only a part of these, by its own rules. It needs Java, and no network once it is downloaded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from annals.api.ui.routes import PAGES
from annals.domain.model.builtin import default_source
from annals.projections.outgoing.destination_guard import DestinationGuard
from tests.api.ui.pages import TOKENS, submit
from tests.support.html_validator import validate
from tests.support.polling import until
from tests.support.registries.in_process import Api, create, serving
from tests.support.registries.sample import ENDPOINTS, HOSTILE, MESSAGES, SCHEMAS
from tests.support.registries.sample_pages import ALL
from tests.support.subscribing import KEY
from tests.support.webhooks import Webhooks, webhooks

pytestmark = [pytest.mark.uses("Java"), pytest.mark.timeout(180)]

ROOT: Final = "Bearer root"
READING: Final = "schemagroups/sensors/schemas/reading"
SUBSCRIPTION: Final[dict[str, Any]] = {"protocol": "HTTP", "types": ["io.xregistry.group.created"]}
LINK: Final = {"url": "http://127.0.0.1:9/r", "mode": "pull"}
#: The page whose response is a file.
_FILE: Final = "transfer/export"
#: Forms that are refused, checked or previewed, each with its path and fields.
FORMS: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "refused": (f"edit/{READING}", {"form action": "save", "labels": "{", "document text": "{"}),
    "invalid": ("new/schemagroups/sensors/schemas", {"form action": "save", "schemaid": "a b", "name": "x"}),
    "checked": (
        f"edit/{READING}",
        {"form action": "check", "format": "Avro/1.12.0", "document text": '{"type": "recor"}'},
    ),
    "incompatible": (
        f"edit/{READING}",
        {
            "form action": "check",
            "format": "Avro/1.12.0",
            "meta.compatibility": "backward",
            "document text": '"string"',
        },
    ),
    "previewed": (f"new/{READING}/versions", {"form action": "preview", "versionid": "9", "name": HOSTILE}),
    "conflict": (
        "edit/schemagroups/sensors",
        {"form action": "save", "loaded epoch": "1", "loaded position": "5", "name": "mine"},
    ),
    "unconfirmed": ("delete/schemagroups/sensors", {"confirm": "wrong"}),
    "key refused": ("keys", {"name": "caller:a", "role": "reader"}),
    "grant refused": ("grants", {"subject": "carol", "role": "reader"}),
    "subscription refused": ("subscriptions/new", {"sink": "ftp://x", "filters": "{"}),
    "subscription previewed": ("subscriptions/new", {"preview": "on", "filters": '[{"sql": "missing = 1"}]'}),
    "model previewed": ("model", {"action": "preview", "text": '{"groups": {}}'}),
    "model refused": ("model", {"action": "save", "text": "{"}),
    "capabilities previewed": ("capabilities", {"action": "preview", "text": '{"mutable": ["entities"]}'}),
    "repair refused": ("links/copy/repair", {}),
    "wrong action": ("links/copy", {"action": "burn"}),
}


@pytest.fixture
def sinks() -> Iterator[Webhooks]:
    """Sinks that refuse each event."""
    with webhooks() as sinks:
        sinks.answer = lambda path, event: 400
        yield sinks


@pytest.fixture
def api(sqlite_url: str, sinks: Webhooks) -> Iterator[Api]:
    """A registry with the sample; callers without a credential may read."""
    create(sqlite_url, default_source())
    ports = {"delivers": True, "resolver": DestinationGuard("127.0.0.1", allows_plaintext=True)}
    options: dict[str, Any] = {"sinks_validation": "off", "sinks_plaintext": True, "master_key": KEY}
    access: dict[str, Any] = {"tokens": json.dumps(TOKENS), "api_keys": True, "read_only_anonymous": True}
    with serving(sqlite_url, ports=ports, **options, **access) as api:
        for path, body in (("/schemagroups", SCHEMAS), ("/messagegroups", MESSAGES), ("/endpoints", ENDPOINTS)):
            api.done("POST", path, body, authorization=ROOT)
        yield api


def filled_paths(api: Api, sink: str) -> list[str]:
    """Creates a subscription with a dead letter, a link, a key and a grant; the paths of their pages."""
    body = {**SUBSCRIPTION, "sink": sink}
    id = api.done("POST", "/subscriptions", body, authorization=ROOT).json()["id"]
    made = api.done("PUT", "/schemagroups/bad", {"name": HOSTILE}, authorization=ROOT)
    api.done("PUT", "/-/links/copy", LINK, authorization=ROOT)
    key = api.done("POST", "/-/keys", {"name": "build", "role": "reader"}, authorization=ROOT).json()["id"]
    grant = {"subject": "caller:carol", "role": "reader", "at": "/schemagroups/sensors"}
    grantid = api.done("POST", "/-/grants", grant, authorization=ROOT).json()["id"]

    def dead_letters() -> Any:
        return api.send("GET", f"/subscriptions/{id}/deadletters", authorization=ROOT).json()

    until(lambda: len(dead_letters()) > 0)
    discard = f"discard/{dead_letters()[0]['sequence']}"
    own = [f"subscriptions/{id}{each}" for each in ("", "?from=1", "/edit", "/delete", f"/{discard}")]
    links = [f"links/copy{each}" for each in ("", "/promote", "/repair")]
    keys = [f"keys/{key}/rotate", f"keys/{key}/revoke", f"grants/{grantid}/revoke"]
    return [*own, *links, *keys, f"interactions/{made.headers['xregistry-xregcorrelationid']}"]


def shown_forms(api: Api) -> dict[str, str]:
    """The pages that are responses to forms, and the one that shows a new key."""
    pages: dict[str, str] = {}
    for name, (path, fields) in FORMS.items():
        answer = submit(api, path, **fields)
        assert "location" not in answer.headers, name
        pages[name] = answer.text
    made = submit(api, "keys", name="shown", role="reader")
    cookie = made.headers["set-cookie"].partition(";")[0]
    pages["a new key"] = api.send("GET", "/ui/keys", authorization=ROOT, cookie=cookie).text
    assert "New key" in pages["a new key"]
    document = json.dumps({"schemagroups": {"brought": {}}}).encode()
    for action, content in (("preview", document), ("import", b"{")):
        pages[f"{action} of a file"] = send_file(api, "transfer", {"action": action, "dialect": "xRegistry"}, content)
    return pages


def send_file(api: Api, path: str, fields: dict[str, str], content: bytes) -> str:
    """The page after a form with a file."""
    files = {"file": ("a.json", content, "application/json")}
    request = api.client.post(f"/ui/{path}", data=fields, files=files, headers={"authorization": ROOT})
    return api.runner.run(request).text


def test_each_page_is_valid(api: Api, sinks: Webhooks, tmp_path: Path) -> None:
    """UI-12, UI-21: each page of `PAGES`, for an administrator and an anonymous caller, and each kind of refusal."""
    paths = [*ALL, *filled_paths(api, f"{sinks.url}/s")]
    pages = shown_forms(api)
    for path in paths:
        if not path.startswith(_FILE):
            pages[f"{path} (root)"] = api.send("GET", f"/ui/{path}", authorization=ROOT).text
            pages[f"{path} (anybody)"] = api.send("GET", f"/ui/{path}").text
    covered = {route.template for path in paths if (route := PAGES.find_path(path.partition("?")[0]))}
    assert covered == {route.template for route in PAGES.routes}
    pages["signing in"] = api.send("GET", "/ui/login?next=/ui/model").text
    pages["signing in while editing"] = submit(api, f"edit/{READING}", by="none", name="kept").text
    pages["no such page"] = api.send("GET", "/ui/nothing/at/all").text
    assert [name for name, html in pages.items() if not re.match(r"\s*<!doctype html>", html)] == []
    assert validate(pages, tmp_path) == []
