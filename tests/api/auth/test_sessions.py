"""Sessions without a server: stored tokens of the provider, and the limit of sessions per caller."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Final

import pytest
from sqlalchemy import create_engine

from annals.api.auth.credentials import InvalidCredential
from annals.api.auth.identity import Identity
from annals.api.auth.sessions.provider_tokens import ProviderTokens, seal_tokens, unseal_tokens
from annals.api.auth.sessions.session_settings import SessionSettings
from annals.api.auth.sessions.sessions import CHECK_SECONDS, PROVIDER, UNCHECKED_SECONDS, SessionProvider, Sessions
from annals.commands.store.secrets import Vault
from annals.domain.access.roles import Caller, Role
from annals.domain.errors.http_errors import ProviderUnavailable
from annals.projections.sessions.session_store import MAX_SESSIONS, SessionStore
from tests.support.registries.in_process import create

KEY: Final = bytes([1]) * 32
TOKENS: Final = ProviderTokens("a refresh token", "an ID token")
ADA: Final = Identity(
    Caller("ada", Role.READER, began_by=PROVIDER), PROVIDER, reference="https://provider.example annals"
)


class Provider:
    """A provider that accepts its own refresh token."""

    reference = "https://provider.example annals"

    async def refresh(self, refresh_token: str) -> tuple[Identity, ProviderTokens]:
        assert refresh_token == TOKENS.refresh_token
        return Identity(Caller("ada", Role.WRITER), PROVIDER), TOKENS


PROVIDER_OF_ADA: Final = Provider()


class Clock:
    """Seconds since 1970; the test sets them."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def store(store_url: str) -> Iterator[SessionStore]:
    create(store_url)
    with closing(SessionStore(store_url)) as store:
        yield store


class OtherProvider(Provider):
    """A provider that is not asked about the sessions of another one."""

    reference = "https://other.example annals"

    async def refresh(self, refresh_token: str) -> tuple[Identity, ProviderTokens]:
        raise AssertionError("it was sent the token of another provider")


def open_sessions(
    store: SessionStore, clock: Clock, *keys: bytes, provider: SessionProvider | None = PROVIDER_OF_ADA
) -> Sessions:
    sessions = Sessions(store, SessionSettings(), Vault(keys), provider, clock)
    sessions.open()
    return sessions


def no_list(authenticator: str) -> Sequence[Identity] | None:
    """No other authenticator is on."""
    return None


def caller(sessions: Sessions, cookie: str) -> Caller | None:
    try:
        return asyncio.run(sessions.identify(cookie, no_list)).caller
    except InvalidCredential:
        return None


def test_the_id_token_comes_back_at_sign_out(store: SessionStore) -> None:
    """ACC-57: the first sign-out returns the ID token and the authenticator of the session."""
    sessions = open_sessions(store, Clock(), KEY)
    cookie = asyncio.run(sessions.begin(ADA, TOKENS))
    assert asyncio.run(sessions.end(cookie)) == (PROVIDER, TOKENS.id_token)
    assert asyncio.run(sessions.end(cookie)) is None


def test_without_a_master_key_no_token_is_kept(store: SessionStore) -> None:
    """ACC-56: tokens are stored encrypted or not at all."""
    sessions = open_sessions(store, Clock())
    assert asyncio.run(sessions.end(asyncio.run(sessions.begin(ADA, TOKENS)))) == (PROVIDER, "")


def test_an_id_token_alone_does_not_make_a_session_longer(store: SessionStore) -> None:
    """ACC-56: without a refresh token, a session lasts an hour."""
    clock = Clock()
    sessions = open_sessions(store, clock, KEY)
    cookie = asyncio.run(sessions.begin(ADA, ProviderTokens(id_token="an ID token")))
    clock.now += CHECK_SECONDS
    assert caller(sessions, cookie) == ADA.caller
    clock.now += UNCHECKED_SECONDS - CHECK_SECONDS
    assert caller(sessions, cookie) is None


class BusyProvider(Provider):
    """A provider that answers some questions only."""

    def __init__(self, answers: Sequence[bool]) -> None:
        self._answers = iter(answers)

    async def refresh(self, refresh_token: str) -> tuple[Identity, ProviderTokens]:
        if not next(self._answers):
            raise ProviderUnavailable
        return await super().refresh(refresh_token)


class OneTimeProvider(Provider):
    """A provider that takes each refresh token once."""

    def __init__(self) -> None:
        self.next = TOKENS.refresh_token

    async def refresh(self, refresh_token: str) -> tuple[Identity, ProviderTokens]:
        if refresh_token != self.next:
            raise ValueError("the refresh token was used before")
        self.next += "+"
        return Identity(Caller("ada", Role.WRITER), PROVIDER), ProviderTokens(self.next, "an ID token")


def test_a_busy_database_loses_no_refresh_token(store: SessionStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """ACC-56: the session goes on with the roles of the answer, and its next check sends the newest token."""
    clock = Clock()
    provider = OneTimeProvider()
    sessions = open_sessions(store, clock, KEY, provider=provider)
    cookie = asyncio.run(sessions.begin(ADA, TOKENS))
    roles = []
    for is_busy in (False, True, True, False, False):
        clock.now += CHECK_SECONDS
        with monkeypatch.context() as patch:
            if is_busy:
                patch.setattr(store, "set_checked", _refuse)
            found = caller(sessions, cookie)
        roles.append(found.role if found is not None else None)
    assert roles == [Role.WRITER] * 5
    clock.now += CHECK_SECONDS
    other = caller(open_sessions(store, clock, KEY, provider=provider), cookie)
    assert other is not None and provider.next.count("+") == 6, "and another process knows the last token"


def _refuse(*_: object) -> None:
    raise sqlite3.OperationalError("database is locked")


def test_an_outage_of_the_provider_ends_no_session_at_once(store: SessionStore) -> None:
    """ACC-56: for an hour after its last answer, the roles of that hold; it is asked again every quarter of an hour."""
    clock = Clock()
    provider = BusyProvider([False, True, False, False, False, False])
    sessions = open_sessions(store, clock, KEY, provider=provider)
    cookie = asyncio.run(sessions.begin(ADA, TOKENS))
    roles = []
    for _ in range(6):
        clock.now += CHECK_SECONDS
        found = caller(sessions, cookie)
        roles.append(found.role if found is not None else None)
    assert roles == [Role.READER, Role.WRITER, Role.WRITER, Role.WRITER, Role.WRITER, None]


@pytest.mark.parametrize("seconds", [0, CHECK_SECONDS])
@pytest.mark.parametrize("provider", [None, OtherProvider()])
def test_sessions_end_with_their_provider(store: SessionStore, provider: Provider | None, seconds: int) -> None:
    """ACC-10, ACC-56: without the provider of a session, or with another one, the session has ended. No other provider
    is sent its refresh token."""
    clock = Clock()
    cookie = asyncio.run(open_sessions(store, clock, KEY).begin(ADA, TOKENS))
    clock.now += seconds
    assert caller(open_sessions(store, clock, KEY, provider=provider), cookie) is None
    assert caller(open_sessions(store, clock, KEY), cookie) is None, "and stays so"


@pytest.mark.parametrize("provider", [None, OtherProvider()])
def test_no_other_provider_gets_the_id_token(store: SessionStore, provider: Provider | None) -> None:
    """ACC-57: a sign-out on a server with another provider, or none, ends the session and does not go on to it."""
    clock = Clock()
    cookie = asyncio.run(open_sessions(store, clock, KEY).begin(ADA, TOKENS))
    assert asyncio.run(open_sessions(store, clock, KEY, provider=provider).end(cookie)) is None
    assert caller(open_sessions(store, clock, KEY), cookie) is None


def test_tokens_of_another_session_do_not_open(store: SessionStore) -> None:
    """ACC-56: tokens that are copied into the row of another session cannot be decrypted."""
    vault = Vault([KEY])
    assert unseal_tokens(vault, "one", *seal_tokens(vault, "one", TOKENS)) == TOKENS
    assert unseal_tokens(vault, "other", *seal_tokens(vault, "one", TOKENS)) is None


def test_sessions_of_one_caller_are_bounded(store: SessionStore) -> None:
    """ACC-54: beyond the limit, a sign-in ends the least recently used session of the same caller."""
    clock = Clock()
    sessions = open_sessions(store, clock)
    other = asyncio.run(sessions.begin(Identity(Caller("jo"), "jwt")))
    first, second = (asyncio.run(sessions.begin(ADA)) for _ in range(2))
    clock.now += 100
    assert caller(sessions, first) == ADA.caller, "a use, so that the second one is the oldest"
    last = [asyncio.run(sessions.begin(ADA)) for _ in range(MAX_SESSIONS - 1)]
    assert [caller(sessions, cookie) is None for cookie in (other, first, second, *last)] == [
        False,
        False,
        True,
        *[False] * len(last),
    ]
    for _ in range(3):  # in the same second
        assert caller(sessions, asyncio.run(sessions.begin(ADA))) == ADA.caller


def test_the_table_of_an_older_program(store_url: str) -> None:
    """ACC-54: a table of sessions from an older program is replaced; its sessions have ended, and sign-ins work."""
    create(store_url)
    engine = create_engine(store_url)
    with engine.begin() as connection:
        connection.exec_driver_sql("CREATE TABLE session (hash TEXT PRIMARY KEY, caller TEXT NOT NULL)")
        connection.exec_driver_sql("INSERT INTO session VALUES ('old', 'ada')")
    engine.dispose()
    with closing(SessionStore(store_url)) as store:
        sessions = open_sessions(store, Clock(), KEY)
        assert store.find("old") is None
        cookie = asyncio.run(sessions.begin(ADA, TOKENS))
    with closing(SessionStore(store_url)) as store:
        assert caller(open_sessions(store, Clock(), KEY), cookie) == ADA.caller
