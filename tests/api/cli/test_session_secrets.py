"""`annals secrets rotate` and the sessions of browsers, on both databases."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from contextlib import closing

import pytest

from annals.api.auth.identity import Identity
from annals.api.auth.sessions.sessions import CHECK_SECONDS, PROVIDER
from annals.domain.access.roles import Caller, Role
from annals.projections.sessions.session_store import SessionStore
from tests.api.auth.test_sessions import ADA, TOKENS, Clock, caller, open_sessions
from tests.support.console import Annals
from tests.support.registries.in_process import create

FIRST, SECOND, THIRD = (bytes([number]) * 32 for number in (1, 2, 3))


def test_another_master_key(store_url: str, annals: Annals, monkeypatch: pytest.MonkeyPatch) -> None:
    """ACC-56: data keys of provider tokens are wrapped with the newest master key; the old key is no longer needed."""
    clock = Clock()
    create(store_url)
    with closing(SessionStore(store_url)) as store:
        before = open_sessions(store, clock, FIRST)
        checked_after, checked_before = (asyncio.run(before.begin(ADA, TOKENS)) for _ in range(2))
        unrelated = asyncio.run(before.begin(Identity(Caller("jo"), "jwt")))
        asyncio.run(open_sessions(store, clock, THIRD).begin(ADA, TOKENS))  # neither configured key opens this session
        monkeypatch.setenv("ANNALS_MASTER_KEY", ",".join(b64encode(key).decode() for key in (SECOND, FIRST)))
        ended = annals("secrets", "rotate", "--database", store_url)
        assert ended.code == 0, ended.err
        assert ended.out.endswith("2 sessions are under the newest master key\n")
        clock.now += CHECK_SECONDS
        assert caller(open_sessions(store, clock, FIRST), checked_before) is None
        after = open_sessions(store, clock, SECOND)
        assert caller(after, checked_after) == Caller("ada", Role.WRITER, began_by=PROVIDER)
        assert caller(after, unrelated) == Caller("jo", began_by="jwt")
