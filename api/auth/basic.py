"""Names and passwords of a file (`ANNALS_BASIC_FILE`), sent as Basic (ACC-30 to ACC-34).

Spec: RFC 7617.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, NamedTuple

from annals.api.auth import json_settings
from annals.api.auth.caller_entries import check_members, parse_caller, parse_object
from annals.api.auth.credentials import InvalidCredential, RequestCredential, Scheme
from annals.api.auth.identity import Identity
from annals.api.auth.password_hashes import MAX_PASSWORD_BYTES, check_hash, verify_hash
from annals.domain.errors.problems import ServerBusy
from annals.domain.values.json_text import dumps

#: Hashings at once, and how many may wait: each takes up to 256 MiB of memory.
CONCURRENT_HASHINGS: Final = 2
MAX_WAITING: Final = 64
#: Seconds for which a good password is remembered, and how many of them.
REMEMBER_SECONDS: Final = 60.0
REMEMBERED: Final = 1024
_MEMBERS: Final = frozenset(("password", "role", "groups"))
#: What an unknown name is checked against where the file has no entry.
_NO_ENTRY: Final = "$argon2id$v=19$m=65536,t=3,p=4$AAAAAAAAAAAAAAAAAAAAAA$" + 43 * "A"


class PasswordEntry(NamedTuple):
    """One name of the file."""

    hash: str
    identity: Identity


class PasswordVerifier:
    """The names and passwords of a file. passwords: returns its current content. Belongs to one event loop."""

    name: Final = "basic"
    schemes = frozenset((Scheme.BASIC,))

    def __init__(self, passwords: Callable[[], Mapping[str, PasswordEntry]]) -> None:
        self._passwords = passwords
        self._key = secrets.token_bytes(32)
        self._threads = ThreadPoolExecutor(CONCURRENT_HASHINGS, "annals-passwords")
        self._running: dict[tuple[bytes, str], asyncio.Future[bool]] = {}
        self._good: OrderedDict[bytes, tuple[float, str]] = OrderedDict()

    async def identify(self, credential: RequestCredential) -> Identity | None:
        """See `CredentialVerifier`. Raises: ServerBusy if too many passwords wait for their check."""
        if credential.scheme is not Scheme.BASIC:
            return None
        if len(credential.secret.encode()) > MAX_PASSWORD_BYTES:
            raise InvalidCredential(f"the password has more than {MAX_PASSWORD_BYTES} bytes")
        key = self._digest(dumps([credential.name, credential.secret]))
        entry = self._passwords().get(credential.name)
        if entry is not None and self._is_remembered(key, entry.hash):
            return entry.identity
        # An unknown name costs a check as well, so that the time of an answer does not tell which names exist.
        hash = entry.hash if entry is not None else self._hash_of_unknown(credential.name)
        is_good = await self._check(hash, credential.secret, key)
        if entry is None or not is_good:
            raise InvalidCredential("the name or the password is wrong", "unknown" if entry is None else "password")
        self._remember(key, hash)
        return entry.identity

    def listed(self) -> list[Identity]:
        """See `CredentialVerifier`."""
        return [entry.identity for entry in self._passwords().values()]

    def _hash_of_unknown(self, name: str) -> str:
        """A hash of another name, always the same one: it costs as much as those of the file do."""
        hashes = [entry.hash for entry in self._passwords().values()] or [_NO_ENTRY]
        return hashes[int.from_bytes(self._digest(name.encode())[:8]) % len(hashes)]

    async def _check(self, hash: str, password: str, key: bytes) -> bool:
        """Whether a hash is that of a password. Checks of a name and a password at the same time are one.

        key: the digest of both.
        """
        check = key, hash
        task = self._running.get(check)
        if task is None:
            if len(self._running) >= CONCURRENT_HASHINGS + MAX_WAITING:
                raise ServerBusy(detail="too many passwords wait for their check")
            task = asyncio.get_running_loop().run_in_executor(self._threads, verify_hash, hash, password)
            self._running[check] = task
            task.add_done_callback(lambda _: self._running.pop(check))
        return await asyncio.shield(task)

    def _is_remembered(self, key: bytes, hash: str) -> bool:
        remembered_until, remembered_hash = self._good.get(key, (0.0, ""))
        return time.monotonic() < remembered_until and remembered_hash == hash

    def _remember(self, key: bytes, hash: str) -> None:
        self._good[key] = time.monotonic() + REMEMBER_SECONDS, hash
        self._good.move_to_end(key)
        while len(self._good) > REMEMBERED:
            self._good.popitem(last=False)

    def _digest(self, content: bytes) -> bytes:
        """A hash that only this process can make: a copy of its memory gives no list of passwords to try."""
        return hmac.digest(self._key, content, "sha256")


def parse_passwords(path: str) -> dict[str, PasswordEntry]:
    """The names of a file. It has a JSON object: `{NAME: {"password": HASH, "role", "groups"}}`. Raises: ValueError."""
    entries = parse_object(json_settings.read_file(path), "names")
    return {name: _parse_entry(name, entry) for name, entry in entries.items()}


def _parse_entry(name: str, entry: Any) -> PasswordEntry:
    members = check_members(entry, f'the entry "{name}"', "password", _MEMBERS)
    if ":" in name:
        raise ValueError(f'the name "{name}" has a colon, with which no client can send it')
    hash, caller = check_hash(members["password"]), parse_caller(name, members)
    return PasswordEntry(hash, Identity(caller, PasswordVerifier.name, origin="ANNALS_BASIC_FILE", reference=hash))
