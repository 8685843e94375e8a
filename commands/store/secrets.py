"""Secret values at rest: rows that the log only refers to, each encrypted with its own data key.

A master key, which is in no database, wraps the data keys. A change of the master key therefore only wraps them again.
A value is destroyed with its row, while the log stays as it was written.
Rules SUB-913 and SUB-914.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from secrets import token_bytes
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection

from annals.commands.store.database import sql, tables
from annals.commands.store.master_keys import KEY_BYTES
from annals.domain.decisions.world import Secret

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

#: Bytes of the AES-256-GCM nonce, which must be different each time.
_NONCE_BYTES: Final = 12

_SELECT_SECRET: Final = "SELECT wrapped, sealed FROM secret WHERE reference = ? AND owner = ? AND name = ?"
_SELECT_PAGE: Final = (
    "SELECT reference, owner, name, wrapped FROM secret WHERE reference > ? ORDER BY reference LIMIT ?"
)
_REPLACE: Final = "UPDATE secret SET wrapped = ?, sealed = ? WHERE reference = ? AND owner = ? AND name = ?"
_UPDATE_WRAPPED: Final = "UPDATE secret SET wrapped = ? WHERE reference = ? AND wrapped = ?"
# The content of deleted rows can stay in the file for a while, so rows are overwritten first.
_LENGTHS: Final = "SELECT length(wrapped), length(sealed) FROM secret WHERE reference = ?"
_UPDATE_BLANK: Final = "UPDATE secret SET wrapped = ?, sealed = ? WHERE reference = ?"
_DESTROY: Final = "DELETE FROM secret WHERE reference = ?"


class NoMasterKey(RuntimeError):
    """No master key decrypts a secret, or there is none to encrypt it with."""


class Vault:
    """Encrypts and decrypts secrets. keys: master keys of 32 bytes, newest first; all decrypt, the first encrypts."""

    def __init__(self, keys: Sequence[bytes] = ()) -> None:
        self._keys = [_cipher(key) for key in keys]

    def __repr__(self) -> str:
        return f"Vault({len(self._keys)} keys)"

    @property
    def has_key(self) -> bool:
        """Whether there is a key at all."""
        return bool(self._keys)

    def apply(self, connection: Connection, secrets: Iterable[Secret]) -> None:
        """Encrypts and stores secrets that have a value, and destroys the others. Raises: NoMasterKey."""
        for secret in secrets:
            if secret.value is None:
                destroy_secret(connection, secret.reference)
            else:
                row = (secret.reference, secret.owner, secret.name, *self.seal(secret, secret.value))
                sql.insert(connection, tables.secret, [row])

    def reveal(self, connection: Connection, secret: Secret) -> str | None:
        """The value that a secret refers to; None when its row does not exist or no key decrypts it."""
        values = (secret.reference, secret.owner, secret.name)
        row = sql.run(connection, _SELECT_SECRET, values).fetchone()
        return self.unseal(secret, bytes(row[0]), bytes(row[1])) if row else None

    def unseal(self, secret: Secret, wrapped_key: bytes, ciphertext: bytes) -> str | None:
        """The value in a row; None when no key decrypts it, or the row was copied from another secret."""
        associated_data = _associated_data(secret.owner, secret.name)
        data_key = self._unwrap(associated_data, wrapped_key)
        value = _decrypt(_cipher(data_key), associated_data, ciphertext) if data_key else None
        return value.decode() if value is not None else None

    def replace(self, connection: Connection, secret: Secret) -> bool:
        """Replaces a stored value without an event in the log. False when there is no such row.

        Raises: NoMasterKey.
        """
        assert secret.value is not None, "a value is what this is about"
        values = (*self.seal(secret, secret.value), secret.reference, secret.owner, secret.name)
        _overwrite(connection, secret.reference)
        return bool(sql.run(connection, _REPLACE, values).rowcount)

    def rewrap(self, connection: Connection) -> int:
        """Wraps every data key again with the newest master key; returns their number.

        The encrypted values do not change.
        Raises: NoMasterKey when a data key cannot be decrypted.
        """
        count, last_reference = 0, ""
        while rows := sql.run(connection, _SELECT_PAGE, (last_reference, sql.CHUNK)).fetchall():
            for reference, owner, name, wrapped_key in rows:
                rewrapped = self.rewrap_key(Secret(reference, owner, name), bytes(wrapped_key))
                if rewrapped is None:
                    raise NoMasterKey(f"no master key opens the secret {name} of {owner}")
                sql.run(connection, _UPDATE_WRAPPED, (rewrapped, reference, bytes(wrapped_key)))
            count += len(rows)
            last_reference = rows[-1][0]
        return count

    def rewrap_key(self, secret: Secret, wrapped_key: bytes) -> bytes | None:
        """A data key wrapped with the newest master key; None when no key decrypts it. Raises: NoMasterKey."""
        associated_data = _associated_data(secret.owner, secret.name)
        data_key = self._unwrap(associated_data, wrapped_key)
        return None if data_key is None else _encrypt(self._newest_key, associated_data, data_key)

    def seal(self, secret: Secret, value: str) -> tuple[bytes, bytes]:
        """A new data key, wrapped, and a value encrypted with it, for `unseal`. Raises: NoMasterKey."""
        associated_data, data_key = _associated_data(secret.owner, secret.name), token_bytes(KEY_BYTES)
        return _encrypt(self._newest_key, associated_data, data_key), _encrypt(
            _cipher(data_key), associated_data, value.encode()
        )

    @property
    def _newest_key(self) -> AESGCM:
        if not self._keys:
            raise NoMasterKey("there is no master key; set ANNALS_MASTER_KEY")
        return self._keys[0]

    def _unwrap(self, associated_data: bytes, wrapped_key: bytes) -> bytes | None:
        candidates = (_decrypt(key, associated_data, wrapped_key) for key in self._keys)
        return next((data for data in candidates if data is not None), None)


def destroy_secret(connection: Connection, reference: str) -> None:
    """Destroys a value permanently."""
    _overwrite(connection, reference)
    sql.run(connection, _DESTROY, (reference,))


def _overwrite(connection: Connection, reference: str) -> None:
    row = sql.run(connection, _LENGTHS, (reference,)).fetchone()
    if row:
        sql.run(connection, _UPDATE_BLANK, (bytes(row[0]), bytes(row[1]), reference))


def _associated_data(owner: str, name: str) -> bytes:
    """The associated data that binds a ciphertext to its secret, so that no row can replace another."""
    return f"{owner}\0{name}".encode()


def _cipher(key: bytes) -> AESGCM:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # takes long; most registries have no secrets

    return AESGCM(key)


def _encrypt(key: AESGCM, associated_data: bytes, content: bytes) -> bytes:
    nonce = token_bytes(_NONCE_BYTES)
    return nonce + key.encrypt(nonce, content, associated_data)


def _decrypt(key: AESGCM, associated_data: bytes, ciphertext: bytes) -> bytes | None:
    from cryptography.exceptions import InvalidTag

    try:
        return key.decrypt(ciphertext[:_NONCE_BYTES], ciphertext[_NONCE_BYTES:], associated_data)
    except (InvalidTag, ValueError):
        return None
