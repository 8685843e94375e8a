"""Secret values at rest, on both databases."""

from __future__ import annotations

from base64 import b64encode

import pytest

from annals.commands.store.database import sql
from annals.commands.store.log import Store
from annals.commands.store.master_keys import KEY_BYTES, parse_keys
from annals.commands.store.secrets import NoMasterKey, Vault, destroy_secret
from annals.domain.decisions.world import Secret

FIRST, SECOND = bytes(range(KEY_BYTES)), bytes(KEY_BYTES)
MARKER = "swordfish-7f3a"


def secret(value: str | None = None, reference: str = "c1.0", owner: str = "/subscriptions/a") -> Secret:
    return Secret(reference, owner, "sinkcredential.secret", value)


def row(store: Store) -> tuple[bytes, bytes]:
    with store.engine.begin() as connection:
        wrapped, sealed = sql.run(connection, "SELECT wrapped, sealed FROM secret").fetchone()
    return bytes(wrapped), bytes(sealed)


def revealed(store: Store, vault: Vault, wanted: Secret | None = None) -> str | None:
    with store.engine.begin() as connection:
        return vault.reveal(connection, wanted or secret())


def apply(store: Store, vault: Vault, *secrets: Secret) -> None:
    with store.writing() as tx:
        vault.apply(tx.connection, secrets)


def test_a_value_is_sealed(store: Store) -> None:
    # SUB-913: encrypted under a data key of its own
    apply(store, Vault([FIRST]), secret(MARKER))
    assert not any(MARKER.encode() in part for part in row(store))
    assert revealed(store, Vault([FIRST])) == MARKER
    assert MARKER not in repr(secret(MARKER)) and "key" in repr(Vault([FIRST]))


def test_a_row_stands_for_nothing_else(store: Store) -> None:
    # SUB-913: associated data are owner and name, so a row cannot be decrypted for another secret
    apply(store, Vault([FIRST]), secret(MARKER))
    assert revealed(store, Vault([FIRST]), secret(owner="/subscriptions/b")) is None
    with store.writing() as tx:
        sql.run(tx.connection, "UPDATE secret SET owner = ?", ("/subscriptions/b",))
    assert revealed(store, Vault([FIRST]), secret(owner="/subscriptions/b")) is None


def test_a_damaged_row_does_not_open(store: Store) -> None:
    # SUB-913: authenticated encryption
    apply(store, Vault([FIRST]), secret(MARKER))
    sealed = row(store)[1]
    damaged = sealed[:-1] + bytes([sealed[-1] ^ 1])
    with store.writing() as tx:
        sql.run(tx.connection, "UPDATE secret SET sealed = ?", (damaged,))
    assert revealed(store, Vault([FIRST])) is None


def test_without_the_key_nothing_opens(store: Store) -> None:
    # SUB-914: the server works without the key, and reveals no secret
    apply(store, Vault([FIRST]), secret(MARKER))
    assert revealed(store, Vault([SECOND])) is None
    assert revealed(store, Vault()) is None
    assert not Vault().has_key
    with pytest.raises(NoMasterKey):
        apply(store, Vault(), secret(MARKER, "c1.1"))


def test_another_master_key_rewraps_the_data_keys(store: Store) -> None:
    # SUB-914: encrypted values stay as they are
    apply(store, Vault([FIRST]), secret(MARKER))
    before = row(store)
    with store.writing() as tx:
        assert Vault([SECOND, FIRST]).rewrap(tx.connection) == 1
    after = row(store)
    assert after[1] == before[1] and after[0] != before[0]
    assert revealed(store, Vault([SECOND])) == MARKER
    assert revealed(store, Vault([FIRST])) is None


def test_unreadable_secrets_are_not_rewrapped(store: Store) -> None:
    # SUB-914: a key that is missing from the list stops the rotation
    apply(store, Vault([FIRST]), secret(MARKER))
    with pytest.raises(NoMasterKey), store.writing() as tx:
        Vault([SECOND]).rewrap(tx.connection)
    assert revealed(store, Vault([FIRST])) == MARKER


def test_a_value_is_replaced_in_its_row(store: Store) -> None:
    # SUB-307, SUB-913: a renewed token replaces the old one without an event in the log
    vault = Vault([FIRST])
    apply(store, vault, secret("old"))
    with store.writing() as tx:
        assert vault.replace(tx.connection, secret(MARKER))
        assert not vault.replace(tx.connection, secret(MARKER, "c9.9"))
    assert revealed(store, vault) == MARKER
    assert store.log_end().position == 0


def test_a_destroyed_value_is_gone(store: Store) -> None:
    # SUB-913: its row is deleted
    vault = Vault([FIRST])
    apply(store, vault, secret(MARKER))
    apply(store, vault, secret())
    assert revealed(store, vault) is None
    with store.writing() as tx:
        assert sql.scalar(tx.connection, "SELECT count(*) FROM secret") == 0
        destroy_secret(tx.connection, "c1.0")  # destroying it again does no harm


def test_keys_come_as_text() -> None:
    # SUB-914: base64 of 32 bytes, the newest first
    texts = [b64encode(key).decode() for key in (SECOND, FIRST)]
    assert parse_keys(", ".join(texts)) == parse_keys("\n".join(texts) + "\n") == (SECOND, FIRST)
    for wrong in ("", "abc", b64encode(b"short").decode(), "ä" * 44):
        with pytest.raises(ValueError):
            parse_keys(wrong)
