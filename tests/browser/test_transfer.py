"""Export and import of documents, with preview and refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.support.browser import Walk, click, head, walking

pytestmark = [pytest.mark.uses("Chromium"), pytest.mark.timeout(120)]

SCHEMA = "/schemagroups/sensors/schemas/reading"


@pytest.fixture
def walk(browser: Browser, url: str, has_scripts: bool) -> Iterator[Walk]:
    with walking(browser, url, java_script_enabled=has_scripts) as walk:
        yield walk


def choose(page: Page, document: Any, dialect: str = "xRegistry") -> None:
    content = document if isinstance(document, bytes) else json.dumps(document).encode()
    page.get_by_label("File", exact=True).set_input_files(
        files={"name": "document.json", "mimeType": "application/json", "buffer": content}
    )
    page.get_by_role("combobox", name="Dialect", exact=True).select_option(dialect)


def exported(page: Page, path: str, moment: str) -> Any:
    page.get_by_role("textbox", name="Path", exact=True).fill(path)
    page.get_by_role("textbox", name="Moment", exact=True).fill(moment)
    with page.expect_download() as download:
        click(page, "button", "Export")
    return json.loads(Path(download.value.path()).read_bytes())


def test_exports(walk: Walk) -> None:
    """UI-62, UI-123: the whole registry, a part of it, and the past are exported as files."""
    page = walk.go("/ui/transfer")
    assert exported(page, "", "") == httpx.get(f"{walk.url}/export").json()
    schema = exported(page, SCHEMA, "")
    assert schema["schemaid"] == "reading" and set(schema["versions"]) == {"1", "2", "3"}
    assert exported(page, "/schemagroups", "3") == {}
    page.get_by_role("textbox", name="Path", exact=True).fill("/schemagroups/none")
    click(page, "button", "Export")
    expect(page.get_by_role("heading", level=1)).to_have_text("Not found")


def test_an_import(walk: Walk, request: pytest.FixtureRequest) -> None:
    """UI-16, UI-62, UI-83, UI-123: a preview records nothing; an import is one interaction, and shows its counts."""
    group = "brought" + request.node.callspec.id.replace("-", "")
    schemas = {f"s{each}": {"format": "JsonSchema/draft-07", "schema": {"type": "string"}} for each in range(3)}
    page, before = walk.go("/ui/transfer"), head(walk.url)
    choose(page, {"schemagroups": {group: {"schemas": schemas}}})
    click(page, "button", "Preview changes")
    expect(page.get_by_role("region", name="Events to be recorded", exact=True)).to_contain_text("8 events")
    assert head(walk.url) == before
    choose(page, {"schemagroups": {group: {"schemas": schemas}}})
    click(page, "button", "Import")
    expect(page.get_by_role("status").filter(has_text="Saved.")).to_contain_text("Saved. 8 events recorded.")
    expect(page.get_by_role("region", name="Result", exact=True)).to_contain_text("7 created, 1 updated, 0 deleted")
    after = head(walk.url)
    page.reload()
    assert head(walk.url) == after and walk.complaints == []
    id = httpx.get(f"{walk.url}/-/history/schemagroups/{group}").json()[0]["xregcorrelationid"]
    interaction = httpx.get(f"{walk.url}/-/interactions/{id}").json()
    assert (interaction["first"], interaction["last"]) == (before + 1, after) == (before + 1, before + 8)
    export = httpx.get(f"{walk.url}/export").content
    choose(page, export)
    click(page, "button", "Import")
    expect(page.get_by_role("region", name="Result", exact=True)).to_contain_text("0 created")


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (b"{", "error parsing"),
        (b"[]", "JSON object"),
        ({"nothing": {"a": {}}}, "nothing"),
        ({"schemagroups": {"bad id": {}}}, "bad id"),
    ],
)
def test_a_refused_import_changes_nothing(walk: Walk, document: Any, words: str) -> None:
    """UI-26, UI-123."""
    page, before = walk.go("/ui/transfer"), head(walk.url)
    choose(page, document)
    click(page, "button", "Import")
    expect(page.get_by_role("alert")).to_be_focused()
    expect(page.get_by_role("alert")).to_contain_text(words)
    assert head(walk.url) == before


def test_a_document_in_an_older_format(walk: Walk, request: pytest.FixtureRequest) -> None:
    """UI-123: the result reports the changes that the conversion made."""
    id = "old" + request.node.callspec.id.replace("-", "")
    page = walk.go("/ui/transfer")
    choose(page, {"specversion": "1.0-rc2", "endpoints": {id: {"usage": "producer"}}}, "endpoint-1.0-rc2")
    click(page, "button", "Import")
    expect(page.get_by_role("region", name="Result", exact=True)).to_contain_text('"usage":["producer"]')
    assert httpx.get(f"{walk.url}/endpoints/{id}").json()["usage"] == ["producer"]


def test_progress(browser: Browser, url: str) -> None:
    """UI-123: a progress bar is shown, and the import continues when the user leaves the page."""
    schemas = {f"s{each}": {"format": "JsonSchema/draft-07", "schema": {"type": "string"}} for each in range(3000)}
    with walking(browser, url) as walk:
        page = walk.go("/ui/transfer")
        expect(page.get_by_role("progressbar", name="Import", exact=True)).to_be_visible()
        choose(page, {"schemagroups": {"large": {"schemas": schemas}}})
        click(page, "button", "Import")
        expect(page.locator("[data-progress]")).to_contain_text("of")
        page.goto("about:blank")
        walk.go("/ui/timeline")
        for _ in range(100):
            answer = httpx.get(f"{url}/schemagroups/large")
            if answer.status_code == 200:
                break
            page.wait_for_timeout(200)
        assert answer.json()["schemascount"] == 3000


def test_the_stream_of_an_import(url: str) -> None:
    """The stream reports progress, then the result; a refusal is an event too."""
    schemas = {f"s{each}": {"format": "JsonSchema/draft-07", "schema": {"type": "string"}} for each in range(1500)}
    headers = {"accept": "text/event-stream"}
    answer = httpx.post(
        f"{url}/-/import?dialect=xRegistry",
        json={"schemagroups": {"streamed": {"schemas": schemas}}},
        headers=headers,
        timeout=60,
    )
    events = [block.split("\n") for block in answer.text.strip().split("\n\n")]
    assert [name for name, _ in events][-1] == "event: done" and len(events) > 2
    assert json.loads(events[-1][1][6:])["result"] == {"created": 3001, "updated": 1, "deleted": 0}
    assert all(name == "event: progress" for name, _ in events[:-1])
    refused = httpx.post(f"{url}/-/import?dialect=xRegistry", json={"none": {}}, headers=headers).text
    assert refused.startswith("event: refused") and '"status":400' in refused
