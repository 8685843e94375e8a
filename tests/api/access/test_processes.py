"""Changes of keys and grants take effect in every process of a store and on streams (ACC-47, ACC-65, ACC-83)."""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from tests.support.polling import until
from tests.support.registries.in_process import create
from tests.support.serving import annals, serving

TOKENS = json.dumps({"t": {"name": "nora"}})


def status(url: str, credential: str, path: str = "/") -> int:
    return httpx.get(url + path, headers={"authorization": f"Bearer {credential}"}).status_code


@pytest.mark.timeout(120)
def test_changes_hold_in_each_process_within_a_second(store_url: str, tmp_path: Path) -> None:
    # ACC-40, ACC-47, ACC-62, ACC-65
    def console(*arguments: str) -> str:
        ended = annals(*arguments, cwd=tmp_path, ANNALS_DATABASE=store_url)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout.strip()

    with ExitStack() as stack:
        urls = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            settings = {"ANNALS_API_KEYS": "true", "ANNALS_TOKENS": TOKENS}
            urls.append(stack.enter_context(serving(store_url, tmp_path / name, **settings)).url)
        key = console("keys", "add", "ci", "--role", "reader", "--group", "/schemagroups/pay-*=writer")
        time.sleep(1)
        assert [status(url, key) for url in urls] == [200, 200]
        id, *shown = console("keys", "list").split("\t")
        assert (id, shown[0], shown[3]) == (key.split("_")[1], "ci", "reader /schemagroups/pay-*=writer")
        rotated = console("keys", "rotate", id)
        time.sleep(1)
        assert [status(url, each) for url in urls for each in (key, rotated)] == [401, 200, 401, 200]
        ends = [_stream_end(url, rotated) for url in urls]
        console("keys", "revoke", id)
        time.sleep(1)
        assert [status(url, rotated) for url in urls] == [401, 401]
        for end in ends:
            until(end.is_set)
        assert [status(url, "t") for url in urls] == [403, 403]
        grant = console("grants", "add", "caller:nora", "reader")
        time.sleep(1)
        assert [status(url, "t") for url in urls] == [200, 200]
        assert console("grants", "list").split("\t")[:4] == [grant, "caller:nora", "reader", "/"]
        console("grants", "remove", grant)
        time.sleep(1)
        assert [status(url, "t") for url in urls] == [403, 403]
        checked = json.loads(annals_check(tmp_path, store_url, console("keys", "add", "new", "--role", "reader")))
        assert (checked["name"], checked["authenticator"]) == ("key:new", "keys")


def annals_check(folder: Path, database: str, credential: str) -> str:
    (folder / "secret").write_text(credential)
    settings = {"ANNALS_DATABASE": database, "ANNALS_API_KEYS": "true"}
    ended = annals("auth", "check", "--secret-file", "secret", cwd=folder, **settings)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def _stream_end(url: str, credential: str) -> threading.Event:
    """Opens an endless stream. The returned event is set when the stream ends."""
    begun, ended = threading.Event(), threading.Event()

    def read() -> None:
        headers = {"authorization": f"Bearer {credential}", "accept": "text/event-stream"}
        with httpx.stream("GET", f"{url}/-/events", headers=headers, timeout=30) as answer:
            assert answer.status_code == 200
            begun.set()
            for _ in answer.iter_raw():
                pass
        ended.set()

    threading.Thread(target=read, daemon=True).start()
    assert begun.wait(60)
    return ended


@pytest.mark.timeout(60)
def test_a_use_is_written_once_a_minute(sqlite_url: str, tmp_path: Path) -> None:
    # ACC-48
    create(sqlite_url)
    key = annals("keys", "add", "ci", "--role", "reader", cwd=tmp_path, ANNALS_DATABASE=sqlite_url).stdout.strip()
    rows = "SELECT id, time, address FROM key_use"
    with serving(sqlite_url, tmp_path, ANNALS_API_KEYS="true") as served:
        began = time.time()
        with sqlite3.connect(sqlite_url.removeprefix("sqlite:///")) as file:
            for _ in range(4):
                status(served.url, key)
                time.sleep(1)
            until(lambda: file.execute(rows).fetchall())
            [(id, at, address)] = file.execute(rows).fetchall()
            assert (id, address) == (key.split("_")[1], "127.0.0.1") and abs(at - began) < 10
            time.sleep(3)
            assert file.execute(rows).fetchall() == [(id, at, address)]
