"""Pages that change the registry: create, check, preview, save, conflict, delete, restore."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.support.browser import Walk, click, fill_in, head, walking

pytestmark = [pytest.mark.uses("Chromium"), pytest.mark.timeout(120)]

SCHEMA = "/schemagroups/sensors/schemas/reading"


@pytest.fixture
def walk(browser: Browser, url: str, has_scripts: bool) -> Iterator[Walk]:
    with walking(browser, url, java_script_enabled=has_scripts) as walk:
        yield walk


def test_making_a_schema(walk: Walk, request: pytest.FixtureRequest) -> None:
    """UI-16, UI-44, UI-80, UI-83: a preview records nothing; a save shows a status and the new entity."""
    group = "made" + request.node.callspec.id.replace("-", "")
    page = walk.go("/ui/explore/schemagroups")
    click(page, "link", "Create schemagroup")
    expect(page.get_by_role("heading", level=1)).to_have_text("Create schemagroup")
    fill_in(page, schemagroupid=group, name="Made here", labels='{"team": "a"}')
    click(page, "button", "Save")
    expect(page.get_by_role("status").filter(has_text="Saved.")).to_contain_text("Saved. 2 events recorded.")
    click(page, "link", "0 schemas")
    click(page, "link", "Create schema")
    fill_in(page, schemaid="s", Document='{"type": "string"}')
    page.get_by_role("combobox", name="format", exact=True).select_option("JsonSchema/draft-07")
    before = head(walk.url)
    click(page, "button", "Preview changes")
    expect(page.get_by_role("region", name="Events to be recorded", exact=True)).to_contain_text("3 events")
    expect(page.get_by_role("table", name="Events", exact=True)).to_contain_text(f"/schemagroups/{group}/schemas/s")
    assert head(walk.url) == before
    click(page, "button", "Save")
    expect(page.get_by_role("heading", level=1)).to_have_text("s")
    stored = httpx.get(f"{walk.url}/schemagroups/{group}/schemas/s")
    assert stored.content == b'{"type": "string"}' and stored.headers["xregistry-format"] == "JsonSchema/draft-07"
    page.reload()
    assert head(walk.url) == before + 3, "a reload writes nothing"


def test_refusals_keep_the_input(walk: Walk) -> None:
    """UI-26, UI-81: the error is shown at the field, and an alert has the focus and links to the field."""
    page = walk.go(f"/ui/edit{SCHEMA}")
    fill_in(page, name="kept", labels="{", Document='{"type": "record"')
    click(page, "button", "Save")
    expect(page.get_by_role("alert")).to_be_focused()
    labels = page.get_by_role("textbox", name="labels", exact=True)
    expect(labels).to_have_attribute("aria-invalid", "true")
    expect(labels).to_have_accessible_description(re.compile("^This is not JSON: .* at line 1 column 2"))
    labels.fill("")
    click(page, "button", "Save")
    document = page.get_by_role("textbox", name="Document", exact=True)
    expect(document).to_have_attribute("aria-invalid", "true")
    expect(document).to_have_accessible_description(re.compile(r"^the document is not JSON: .* \(line 1, column 18\)$"))
    expect(page.get_by_role("textbox", name="name", exact=True)).to_have_value("kept")
    click(page, "link", "Document")
    expect(document).to_be_focused()


def test_lines_of_a_description(walk: Walk) -> None:
    """UI-73: what was typed in several lines is shown in several lines."""
    path = "/schemagroups/lines"
    httpx.put(walk.url + path, json={"description": "one\ntwo\n\nfour"}).raise_for_status()
    values = (
        walk.go(f"/ui/explore{path}").get_by_role("region", name="Attributes", exact=True).get_by_role("definition")
    )
    assert [text.split("\n") for text in values.all_inner_texts() if "two" in text] == [["one", "two", "", "four"]]


def test_nothing_to_save(walk: Walk) -> None:
    """UI-16: saving an unchanged form writes nothing, whatever the format of the document."""
    before = head(walk.url)
    for path in (SCHEMA, f"{SCHEMA}/versions/1", "/schemagroups/sensors", "/endpoints/telemetry", "/"):
        page = walk.go(f"/ui/edit{path}")
        click(page, "button", "Save")
        expect(page.get_by_role("status").filter(has_text="Nothing")).to_have_text("Nothing to save.")
    assert head(walk.url) == before


def test_conflict(walk: Walk) -> None:
    """UI-84: changes of one side are merged, the user chooses where both changed, and documents merge by lines."""
    path = "/schemagroups/sensors/schemas/alarm"
    lines = [f'"p{number}": {{"type": "string"}}' for number in range(8)]
    text = '{\n"type": "object",\n"properties": {\n' + ",\n".join(lines) + "\n}\n}\n"
    headers = {"content-type": "application/schema+json", "xregistry-format": "JsonSchema/draft-07"}
    httpx.put(walk.url + path, content=text, headers=headers).raise_for_status()
    httpx.patch(f"{walk.url}{path}$details", json={"name": "first", "description": "first"}).raise_for_status()
    page = walk.go(f"/ui/edit{path}")
    theirs = text.replace('"p0": {"type": "string"}', '"p0": {"type": "integer"}')
    changes = {"name": "theirs", "documentation": "https://example.com/theirs"}
    httpx.put(walk.url + path, content=theirs, headers=headers | {"xregistry-name": "theirs"}).raise_for_status()
    httpx.patch(f"{walk.url}{path}$details", json=changes | {"description": "first"}).raise_for_status()
    fill_in(page, name="yours", description="yours", Document=text.replace('"p7"', '"p8"'))
    click(page, "button", "Save")
    expect(page.get_by_role("heading", level=1)).to_have_text("Conflict")
    table = page.get_by_role("table", name="Three-way difference", exact=True)
    for name in ("Attribute", "Loaded", "Now", "Yours"):
        expect(table.get_by_role("columnheader", name=name, exact=True)).to_be_visible()
    expect(table.get_by_role("radio")).to_have_count(2)
    table.get_by_role("radio", name="Theirs name", exact=True).check()
    click(page, "button", "Save merged")
    expect(page.get_by_role("status").filter(has_text="Saved.")).to_be_visible()
    merged = httpx.get(f"{walk.url}{path}$details").json()
    assert (merged["name"], merged["description"]) == ("theirs", "yours")
    assert merged["documentation"] == "https://example.com/theirs"
    stored = httpx.get(walk.url + path).text
    assert '"p0": {"type": "integer"}' in stored and '"p8"' in stored and '"p7"' not in stored


def test_delete_and_restore(walk: Walk, request: pytest.FixtureRequest) -> None:
    """UI-45, UI-46, UI-85, UI-86: a deletion lists descendants and needs the id to confirm; a restore undoes it."""
    group = "gone" + request.node.callspec.id.replace("-", "")
    schema = {"format": "JsonSchema/draft-07", "schema": {"type": "string"}}
    body = {group: {"schemas": {"a": schema, "b": schema}}}
    httpx.post(f"{walk.url}/schemagroups", json=body).raise_for_status()
    position = head(walk.url)
    page = walk.go(f"/ui/explore/schemagroups/{group}")
    click(page, "link", "Delete")
    expect(page.get_by_role("heading", level=1)).to_have_text(f"Delete {group}")
    table = page.get_by_role("table", name="Deleted with it", exact=True)
    expect(table.get_by_role("row")).to_have_count(3)
    fill_in(page, **{"Type the id to confirm": "other"})
    click(page, "button", "Delete")
    expect(page.get_by_role("alert")).to_have_text(f"Type {group} to confirm.")
    fill_in(page, **{"Type the id to confirm": group})
    click(page, "button", "Delete")
    expect(page.get_by_role("heading", level=1)).to_have_text("schemagroups")
    expect(page.get_by_role("status").filter(has_text="Saved.")).to_be_visible()
    assert httpx.get(f"{walk.url}/schemagroups/{group}").status_code == 404
    page = walk.go(f"/ui/restore/schemagroups/{group}?asof={position}")
    expect(page.get_by_role("table", name="Events", exact=True).get_by_role("row")).to_have_count(7)
    click(page, "button", "Restore")
    expect(page.get_by_role("heading", level=1)).to_have_text(group)
    assert httpx.get(f"{walk.url}/schemagroups/{group}/schemas/a").status_code == 200


def test_check_while_typing(browser: Browser, url: str) -> None:
    """UI-82: half a second after typing, the last text is checked, and nothing is written."""
    with walking(browser, url) as walk:
        page, before = walk.go(f"/ui/new{SCHEMA}/versions"), head(url)
        result = page.get_by_role("region", name="Check result", exact=True)
        document = page.get_by_role("textbox", name="Document", exact=True)
        document.fill('{"type": "nonsense"}')
        expect(result).to_contain_text("Not valid")
        for text in ('{"type": "x"}', '{"type": "y"}', '"string"'):
            document.fill(text)
        expect(result.get_by_text("Valid", exact=True)).to_be_visible()
        assert head(url) == before and walk.complaints == []


def test_the_model(walk: Walk, request: pytest.FixtureRequest) -> None:
    """UI-57, UI-70, UI-120: a preview shows lines and events; after a save, pages have the new type."""
    plural = "things" + request.node.callspec.id.replace("-", "")
    source = httpx.get(f"{walk.url}/modelsource").json()
    groups = source["groups"]
    page = walk.go("/ui/model")
    text = page.get_by_role("textbox", name="Model source", exact=True)
    removed = {"groups": {name: groups[name] for name in groups if name != "schemagroups"}}
    text.fill(json.dumps(removed))
    before = head(walk.url)
    click(page, "button", "Preview changes")
    expect(page.get_by_role("alert")).to_contain_text("non-compliant")
    misfits = page.get_by_role("region", name="Entities that would not fit", exact=True)
    expect(misfits.get_by_role("link", name="/schemagroups/sensors", exact=True)).to_be_visible()
    text.fill(json.dumps({"groups": {**groups, plural: {"singular": f"{plural}x", "oops": 1}}}))
    click(page, "button", "Save")
    expect(page.get_by_role("alert")).to_contain_text(f"groups.{plural}.oops")
    type = {"singular": f"{plural}x", "resources": {"parts": {"singular": "part", "hasdocument": False}}}
    text.fill(json.dumps({"groups": {**groups, plural: type}}))
    click(page, "button", "Preview changes")
    expect(page.get_by_role("table", name="Text difference", exact=True)).to_contain_text(f'"{plural}": {{')
    expect(page.get_by_role("region", name="Events to be recorded", exact=True)).to_contain_text("/model")
    assert head(walk.url) == before
    click(page, "button", "Save")
    expect(page.get_by_role("status").filter(has_text="Saved.")).to_be_visible()
    click(page, "link", "Explore")
    click(page, "link", plural)
    click(page, "link", f"Create {plural}x")
    fill_in(page, **{f"{plural}xid": "a"})
    click(page, "button", "Save")
    expect(page.get_by_role("heading", level=1)).to_have_text("a")


def test_a_changed_model_conflicts(walk: Walk) -> None:
    """UI-57: a save does not silently overwrite a model that another request has changed since the page was loaded."""
    page = walk.go("/ui/model")
    source = httpx.get(f"{walk.url}/modelsource").json()
    httpx.put(f"{walk.url}/modelsource", json={**source, "description": f"of {head(walk.url)}"}).raise_for_status()
    page.get_by_role("textbox", name="Model source", exact=True).fill(json.dumps(source | {"description": "mine"}))
    click(page, "button", "Save")
    expect(page.get_by_role("heading", level=1)).to_have_text("Conflict")
    click(page, "button", "Save")
    expect(page.get_by_role("status").filter(has_text="Saved.")).to_be_visible()
    assert httpx.get(f"{walk.url}/model").json()["description"] == "mine"
