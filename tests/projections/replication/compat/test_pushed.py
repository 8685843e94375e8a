"""Copies that are pushed over a legacy API to another Annals registry: only the pushing link may write them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.projections.replication.compat.clients import MC, Api, running_registries
from tests.projections.replication.compat.test_copies import EACH, conflicts, wait_until_equal
from tests.support.polling import until
from tests.support.registries.restarted import TOKEN, TOKENS, WRITER

PUSHER = "the-token-of-a-link"


@EACH
def test_pushed_copies_are_read_only(api: Api, tmp_path: Path, store_url: str) -> None:
    """LEG-909: clients of the target cannot write a copy over any API; the link still writes and deletes it."""
    tokens = json.dumps({**TOKENS, PUSHER: {"name": "pia", "role": "writer"}})
    with running_registries(tmp_path, api, "a", "b", databases={"b": store_url}, ANNALS_TOKENS=tokens) as (a, b):
        a.group("g")
        a.added("g", "s", b"1")
        a.link("b", b, mode="push", credential={"token": PUSHER})
        wait_until_equal(a, b)
        xid = api.xid("g", "s")
        refused: list[tuple[str, str, Any, int]] = [
            ("DELETE", b.path("g"), None, 409),
            ("DELETE", b.path("g", "s"), None, 409),
            ("DELETE", b.path("g", "s") + "/versions/1", None, 409),
            ("PATCH", xid if api is MC else f"{xid}$details", {"name": "mine"}, 400),
            ("DELETE", xid, None, 400),
        ]
        with b.registry.client(WRITER) as writer:
            for method, path, body, status in refused:
                answer = writer.request(method, path, **({} if body is None else {"json": body}))
                assert (method, path, answer.status_code) == (method, path, status), answer.text
                assert answer.json()["authority"] == a.url
            assert writer.post(b.path("g", "s"), content=b"2").status_code == 409
            assert writer.post(b.path("g", "mine"), content=b"2").status_code == 200
            a.added("g", "s", b"2", b"3")
            until(lambda: b.contents("g", "s") == [b"1", b"2", b"3"])
            a.delete("g", "s", 2)
            until(lambda: b.contents("g", "s") == [b"1", b"3"])
            assert conflicts(a, "b") == {}
            with b.registry.client(TOKEN) as admin:
                assert admin.patch(f"{xid}/meta", json={"labels": {"owner": "us"}}).status_code == 200
            assert writer.post(b.path("g", "s"), content=b"4").status_code == 200
        a.added("g", "t", b"1")
        until(lambda: b.contents("g", "t") == [b"1"])
        a.delete("g", "t")
        until(lambda: b.contents("g", "t") == [])
        b.registry.verified()
