"""The sign-ins of the command line at providers: one for each server, in a file that only its owner can read."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import typer

from annals.api.cli.outcome import UsageError

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_OTHERS: Final = 0o077


@dataclass(frozen=True, slots=True)
class SignIn:
    """What the provider has given to the client `client_id`. expires: of the ID token, in seconds since 1970.

    refresh_token: empty if the provider gives none.
    """

    issuer: str
    client_id: str
    expires: float
    id_token: str = field(repr=False)
    refresh_token: str = field(default="", repr=False)


def sign_in_file() -> Path:
    """The file with all sign-ins of this person."""
    return Path(typer.get_app_dir("annals")) / "sign-ins.json"


def origin_of(url: str) -> str | None:
    """Scheme, host and port of a URL; None if it has none of http or https."""
    try:
        parts = urlsplit(url)
        default_port = _DEFAULT_PORTS[parts.scheme]
        return f"{parts.scheme}://{parts.hostname}:{parts.port or default_port}" if parts.hostname else None
    except (ValueError, KeyError):
        return None


def read_sign_ins() -> dict[str, SignIn]:
    """The sign-ins by origin. Raises: UsageError if others can read the file, or it is damaged."""
    file = sign_in_file()
    try:
        with file.open() as opened:
            if os.fstat(opened.fileno()).st_mode & _OTHERS:
                raise UsageError(f"others can read {file}, which has tokens; run `chmod 600` on it, or remove it.")
            return {origin: SignIn(**members) for origin, members in json.load(opened).items()}
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {error.strerror}.") from None
    except (ValueError, TypeError, AttributeError):
        raise UsageError(f"{file} is damaged; remove it, and sign in again.") from None


@contextmanager
def changing_sign_ins() -> Iterator[dict[str, SignIn]]:
    """The sign-ins by origin, stored at the end; other processes wait. Raises: as `read_sign_ins`."""
    file = sign_in_file()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = file.with_suffix(".lock").open("w")
    except OSError as error:
        raise UsageError(f"{file.parent} cannot be written: {error.strerror}.") from None
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        sign_ins = read_sign_ins()
        before = dict(sign_ins)
        yield sign_ins
        if sign_ins != before:
            _write(file, sign_ins)


def _write(file: Path, sign_ins: Mapping[str, SignIn]) -> None:
    new_file = file.with_suffix(".new")
    new_file.unlink(missing_ok=True)
    descriptor = os.open(new_file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as opened:
        json.dump({origin: asdict(sign_in) for origin, sign_in in sign_ins.items()}, opened)
    new_file.replace(file)
