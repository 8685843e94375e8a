"""`annals replicate`: creates and controls links directly in the store."""

from __future__ import annotations

import io
import json
import sys
from base64 import b64encode
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from annals.commands.store.log import Store
from annals.commands.store.secrets import Vault
from annals.domain.decisions.world import Secret
from annals.projections.replication.link_state import LinkStates
from tests.support.console import Annals
from tests.support.serving import serving

KEY: Final = b64encode(bytes(32)).decode()
URL: Final = "https://primary.example"


@pytest.fixture
def url(store_url: str, annals: Annals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a store with a registry; a master key is configured."""
    monkeypatch.setenv("ANNALS_MASTER_KEY", KEY)
    (tmp_path / "registry.json").write_text('{"schemagroups": {"g": {}}}')
    assert annals("import", tmp_path / "registry.json", "--database", store_url).code == 0
    return store_url


def show_link(annals: Annals, url: str, id: str = "primary") -> Any:
    ended = annals("replicate", "show", id, "--database", url)
    assert ended.code == 0, ended.err
    return json.loads(ended.out)


def test_create_update_and_delete_a_link(annals: Annals, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # LEG-901: an administrator can do with the console what the API does
    added = annals("replicate", "add", "primary", f"{URL}/", "--interval", "5", "--database", url)
    assert (added.code, added.out) == (0, "primary\n"), added.err
    assert annals("replicate", "list", "--database", url).out == f"primary\tactive\tlog\tpull\t{URL}\n"
    assert json.loads(annals("replicate", "list", "--json", "--database", url).out) == show_link(annals, url)
    assert show_link(annals, url) == {
        "id": "primary",
        "url": URL,
        "dialect": "log",
        "mode": "pull",
        "scope": {},
        "names": {},
        "interval": 5,
        "conflicts": "rename",
        "enabled": True,
        "status": {"state": "active", "position": 0, "verdict": "unknown"},
    }
    assert annals("replicate", "pause", "primary", "--database", url).out == "resting\n"
    assert annals("replicate", "resume", "primary", "--database", url).out == "active\n"
    assert annals("replicate", "promote", "primary", "--yes", "--database", url).out == "promoted\n"
    assert annals("replicate", "promote", "primary", "--database", url).out == "promoted\n"
    for answer, said in {"n\n": "stopped; nothing has changed.", "": "had no answer; --yes answers it."}.items():
        monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
        cancelled = annals("replicate", "remove", "primary", "--database", url)
        assert cancelled.code == 1 and "becomes writable" in cancelled.err
        assert cancelled.err.endswith(f"{said}\n")
    removed = annals("replicate", "remove", "primary", "--yes", "--database", url)
    assert removed.out == "primary is removed; what came over it is writable\n"
    gone = annals("replicate", "show", "primary", "--database", url)
    assert gone.code == 1 and "cannot be found" in gone.err


def test_a_link_without_copies_is_not_promoted_by_mistake(
    annals: Annals, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert annals("replicate", "add", "primary", URL, "--database", url).code == 0
    promote = ("replicate", "promote", "primary", "--database", url)
    for answer in ("n\n", ""):
        monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
        ended = annals(*promote)
        assert ended.code == 1 and "has never reached the other registry, and has copied nothing" in ended.err
        assert show_link(annals, url)["status"]["state"] == "active"
    with closing(LinkStates(url)) as states:
        states.update("primary", 7, lastcontact=0)
    assert annals(*promote) == (0, "promoted\n", "")


def test_all_fields_of_a_link_are_shown(annals: Annals, url: str) -> None:
    # LEG-901: show prints scope, names and conflicts as in the document of the link
    options = {
        "--dialect": ["xregistry"],
        "--group": ["/schemagroups/a", "/schemagroups/b"],
        "--resource": ["/schemagroups/c/schemas/s"],
        "--filter": ['{"prefix": {"subject": "/schemagroups/x"}}'],
        "--name": ["/schemagroups/a=/schemagroups/z"],
        "--conflicts": ["skip"],
    }
    flags = [text for name, values in options.items() for value in values for text in (name, value)]
    assert annals("replicate", "add", "other", URL, *flags, "--database", url).code == 0
    found = show_link(annals, url, "other")
    assert {name: found[name] for name in ("dialect", "scope", "names", "conflicts")} == {
        "dialect": "xregistry",
        "scope": {
            "groups": ["/schemagroups/a", "/schemagroups/b"],
            "resources": ["/schemagroups/c/schemas/s"],
            "filters": [{"prefix": {"subject": "/schemagroups/x"}}],
        },
        "names": {"/schemagroups/a": "/schemagroups/z"},
        "conflicts": "skip",
    }


def test_where_secrets_come_from(annals: Annals, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # LEG-901: from a file, standard input or the environment; never from an argument, which other processes can see
    (tmp_path / "token").write_text("from a file\n")
    ways: dict[str, tuple[str, ...]] = {
        "file": ("--secret-file", str(tmp_path / "token")),
        "input": ("--secret-file", "-"),
        "environment": (),
        "basic": ("--username", "ann"),
    }
    for number, (id, flags) in enumerate(ways.items()):
        monkeypatch.setattr(sys, "stdin", io.StringIO("from input\n"))
        if number == 2:
            monkeypatch.setenv("ANNALS_LINK_SECRET", "from outside")
        group = ("--group", f"/schemagroups/{id}")
        ended = annals("replicate", "add", id, f"{URL}/{id}", *group, *flags, "--database", url)
        assert ended.code == 0, ended.err
    assert show_link(annals, url, "file")["credential"] == {"type": "bearer"}
    assert show_link(annals, url, "basic")["credential"] == {"type": "basic", "username": "ann"}
    assert values(url) == {
        ("/-/links/file", "credential.token"): "from a file",
        ("/-/links/input", "credential.token"): "from input",
        ("/-/links/environment", "credential.token"): "from outside",
        ("/-/links/basic", "credential.password"): "from outside",
    }
    for flag in ("--token", "--password"):
        assert annals("replicate", "add", "x", URL, flag, "seen", "--database", url).code == 2
    (tmp_path / "token").write_bytes(b"\xff\xfe")
    for file, name in ((tmp_path / "token", tmp_path / "token"), ("-", "standard input")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe"), "utf-8"))
        refused = annals("replicate", "add", "x", URL, "--secret-file", file, "--database", url)
        assert (refused.code, refused.err) == (2, f"annals: {name} is not UTF-8 text.\n")


def values(url: str) -> dict[tuple[str, str], str | None]:
    """The decrypted secrets of a store, by owner and name."""
    with closing(Store(url)) as store, store.engine.begin() as connection:
        rows = connection.exec_driver_sql("SELECT reference, owner, name FROM secret").fetchall()
        vault = Vault([bytes(32)])
        return {(owner, name): vault.reveal(connection, Secret(id, owner, name)) for id, owner, name in rows}


def test_how_links_go(annals: Annals, url: str) -> None:
    # status prints the lag, the last contact, the verdict of the comparison, the conflicts and the last error
    assert annals("replicate", "add", "primary", URL, "--database", url).code == 0
    assert annals("replicate", "status", "--database", url).out == "primary\tactive\t\t\t\tunknown\t0\t\n"
    with closing(LinkStates(url)) as states:
        states.update(
            "primary",
            7,
            taken="2026-01-02T03:04:05Z",
            head={"position": 9, "time": "2026-01-02T03:04:15Z"},
            lastcontact=0,
            verdict="differs",
            difference={"xid": "/schemagroups/g", "here": None, "there": "00"},
            error="no\nanswer",
        )
    row = "primary\tdiverged\t2\t10.0\t1970-01-01T00:00:00+00:00\tdiffers /schemagroups/g\t0\tno\\nanswer\n"
    assert annals("replicate", "status", "primary", "--database", url).out == row
    found = json.loads(annals("replicate", "status", "--json", "--database", url).out)
    assert (found["id"], found["lag"]) == ("primary", {"positions": 2, "seconds": 10.0})


def test_what_is_refused(annals: Annals, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # one line on stderr names the wrong member, and the exit code is not 0
    cases: dict[tuple[str, ...], tuple[int, str]] = {
        ("add", "p", "ftp://primary.example"): (2, "URL: an absolute http or https URL is needed"),
        ("add", "p", "notaurl"): (2, "URL: an absolute http or https URL is needed"),
        ("add", "p", URL, "--dialect", "foo"): (2, "--dialect: it is not one of: "),
        ("add", "p", URL, "--mode", "sideways"): (2, "--mode: it is not one of: "),
        ("add", "p", URL, "--mode", "receive", "--dialect", "xregistry"): (2, "--mode: the dialect xregistry takes"),
        ("add", "p", URL, "--interval", "0"): (2, "--interval: "),
        ("add", "p", URL, "--conflicts", "x"): (2, "--conflicts: it is not one of: rename, skip."),
        ("add", "p", URL, "--group", "x"): (2, "--group: it is not the xid of a Group."),
        ("add", "p", URL, "--resource", "x"): (2, "--resource: it is not the xid of a Resource."),
        ("add", "p", URL, "--name", "/a/b=/a/c"): (2, "--name: a link that follows a log cannot rename Groups."),
        ("add", "p", URL, "--filter", '{"sql": "x LIKE"}'): (2, "--filter sql: "),
        ("add", "p/", URL): (2, "ID: an id is needed"),
        ("add", "p", URL, "--filter", "schemagroups"): (2, "is not a filter"),
        ("add", "p", URL, "--name", "/schemagroups/a"): (2, "does not name two Groups"),
        ("add", "p", URL, "--secret-file", "none"): (2, "there is no file none"),
        ("status", "none"): (1, "cannot be found"),
        ("repair", "none", "--yes"): (1, "cannot be found"),
        ("repair", "none"): (1, "cannot be found"),
        ("remove", "none"): (1, "cannot be found"),
    }
    for arguments, (code, said) in cases.items():
        ended = annals("replicate", *arguments, "--database", url)
        assert (ended.code, ended.err.count("\n"), said in ended.err) == (code, 1, True), (arguments, ended)
    ended = annals("replicate", "list", "--database", f"sqlite:///{tmp_path}/none.db")
    assert (ended.code, ended.err.count("\n")) == (3, 1)
    monkeypatch.delenv("ANNALS_MASTER_KEY")
    monkeypatch.setenv("ANNALS_LINK_SECRET", "x")
    ended = annals("replicate", "add", "p", URL, "--database", url)
    assert (ended.code, ended.err.count("\n"), "no master key" in ended.err) == (1, 1, True)


@pytest.fixture
def primary(tmp_path: Path) -> Iterator[str]:
    """The URL of a served registry."""
    home = tmp_path / "there"
    home.mkdir()
    with serving(f"sqlite:///{home / 'annals.db'}", home) as served:
        yield served.url


def test_a_repair(annals: Annals, url: str, primary: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # LEG-913: the verb asks first; afterwards both registries are equal, and it prints how many entities differed
    # LEG-1108: the console connects only to addresses that the operator permits, as the server does
    annals("replicate", "add", "primary", primary, "--database", url)
    again = annals("replicate", "add", "primary", primary, "--database", url)
    assert again == (1, "", "annals: ID: the link primary exists already.\n")
    refused = annals("replicate", "repair", "primary", "--yes", "--database", url)
    assert refused.code != 0 and "unless ANNALS_SINKS_ALLOW permits them" in refused.err
    annals("replicate", "remove", "primary", "--yes", "--database", url)
    monkeypatch.setenv("ANNALS_SINKS_ALLOW", "127.0.0.1")
    assert annals("replicate", "add", "primary", primary, "--database", url).code == 0
    row = annals("replicate", "status", "primary", "--check", "--database", url).out.split("\t")
    assert (row[1], row[5]) == ("active", "differs /")  # nothing was copied yet
    monkeypatch.setattr(sys, "stdin", io.StringIO("n\n"))
    cancelled = annals("replicate", "repair", "primary", "--database", url)
    assert cancelled.code == 1 and "will be undone" in cancelled.err
    repaired = annals("replicate", "repair", "primary", "--yes", "--database", url)
    assert repaired.out.endswith(" entities differed and are as they are there\n"), repaired.err
    assert annals("log", "hash", "--against", primary, "--database", url).code == 0
    assert annals("replicate", "repair", "primary", "--yes", "--database", url).out == "nothing differed\n"
    row = annals("replicate", "status", "primary", "--check", "--database", url).out.split("\t")
    assert (row[1], row[5]) == ("active", "equal")


def test_a_check_prints_its_rows_and_exits_by_the_verdict(
    annals: Annals, url: str, primary: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # LEG-913: a check prints a row for each link, whatever its verdict; the exit code says whether all links are equal
    monkeypatch.setenv("ANNALS_SINKS_ALLOW", "127.0.0.1,localhost")

    def checked(*ids: str) -> tuple[int, dict[str, str], str]:
        ended = annals("replicate", "status", *ids, "--check", "--database", url)
        rows = [line.split("\t") for line in ended.out.splitlines()]
        return ended.code, {row[0]: row[5] for row in rows}, ended.err

    def add(id: str, other: str, mode: str, group: str) -> None:
        options = ("--mode", mode, "--group", f"/schemagroups/{group}", "--database", url)
        assert annals("replicate", "add", id, other, *options).code == 0

    add("out", "http://127.0.0.1:1", "push", "o")
    assert checked() == (0, {"out": ""}, "")
    add("equal", primary, "pull", "a")
    assert checked() == (0, {"equal": "equal", "out": ""}, "")
    add("lost", "http://127.0.0.1:1", "pull", "b")
    add("in", "http://127.0.0.1:2", "receive", "c")
    add("other", primary.replace("127.0.0.1", "localhost"), "pull", "g")
    differs = {"other": "differs /schemagroups/g"}
    code, rows, said = checked()
    assert (code, rows) == (1, {"equal": "equal", "in": "unknown", "lost": "unknown", "out": "", **differs})
    assert said.endswith("in cannot be compared, lost cannot be compared, other differs.\n")
    assert checked("equal")[:2] == (0, {"equal": "equal"})
    assert checked("lost")[:2] == (1, {"lost": "unknown"})
    assert checked("other")[:2] == (1, differs)
    ended = annals("replicate", "status", "lost", "--check", "--json", "--database", url)
    found = json.loads(ended.out)
    assert (ended.code, found["id"], found["verdict"]) == (1, "lost", "unknown")
    assert "does not answer" in found["error"]
    assert checked("none")[0] == 1
    assert annals("replicate", "promote", "other", "--yes", "--database", url).code == 0
    assert checked("other")[:2] == (0, differs)
    assert annals("replicate", "status", "lost", "--database", url).code == 0


def test_links_by_setting(annals: Annals, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # LEG-901: a server creates the links of its setting once, and keeps later changes of their state
    def served(links: Any) -> tuple[int, Any]:
        with serving(url, tmp_path, ANNALS_MASTER_KEY=KEY, ANNALS_LINKS=json.dumps(links)) as found:
            position = httpx.get(f"{found.url}/-/log/head").json()["position"]
        listed = annals("replicate", "list", "--json", "--database", url).out.splitlines()
        return position, [{**json.loads(line), "status": None} for line in listed]

    annals("replicate", "add", "other", "https://other.example", "--group", "/schemagroups/o", "--database", url)
    document = {"url": URL, "scope": {"groups": ["/schemagroups/g1"]}, "credential": {"token": "a-token"}}
    other = {**show_link(annals, url, "other"), "status": None}
    position, links = served({"primary": document})
    assert links == [other, {**other, **document, "id": "primary", "credential": {"type": "bearer"}}]
    assert served({"primary": document})[0] == position
    annals("replicate", "pause", "primary", "--database", url)
    position, links = served({"primary": document})
    assert not links[1]["enabled"]
    assert served({"primary": {**document, "interval": 5, "enabled": True}})[0] == position + 1
    annals("replicate", "promote", "primary", "--yes", "--database", url)
    left = show_link(annals, url)
    assert served({"primary": {**document, "interval": 7}})[1][1]["interval"] == left["interval"] == 5
    assert left["status"]["state"] == "promoted"


def test_links_by_setting_of_several_processes(postgres_url: str, tmp_path: Path) -> None:
    # several processes that start at the same time create a link once, and all of them start
    links = json.dumps({"primary": {"url": URL}})
    settings = {"ANNALS_MASTER_KEY": KEY, "ANNALS_LINKS": links}
    with closing(Store(postgres_url)) as store:
        store.create()
    homes = [tmp_path / str(number) for number in range(4)]
    for home in homes:
        home.mkdir()
    with ExitStack() as stack, ThreadPoolExecutor(len(homes)) as pool:
        for served in pool.map(lambda home: stack.enter_context(serving(postgres_url, home, **settings)), homes):
            assert httpx.get(f"{served.url}/-/readyz", timeout=60).is_success
    with closing(Store(postgres_url)) as store:
        assert [event.xid for _, event in store.events(0, 1000) if event.xid.startswith("/-/links")] == [
            "/-/links/primary"
        ]


@pytest.mark.parametrize(
    ("links", "code", "said"),
    [
        ('{"a": {"url": "ftp://x"}}', 2, "ANNALS_LINKS: a: The link is not valid at"),
        ('{"a b": {"url": "http://x"}}', 2, "an object with links by id is needed"),
        ("[]", 2, "[] cannot be read"),
        ('{"primary": {"url": "https://another.example"}}', 1, "it cannot change"),
    ],
)
def test_links_by_setting_that_cannot_be(
    annals: Annals, url: str, monkeypatch: pytest.MonkeyPatch, links: str, code: int, said: str
) -> None:
    # the server does not start if it cannot have the links of its setting
    annals("replicate", "add", "primary", URL, "--database", url)
    monkeypatch.setenv("ANNALS_LINKS", links)
    ended = annals("serve", "--port", "0", "--database", url)
    assert ended.code == code
    assert said in ended.err
    assert ended.err.count("\n") == 1
