"""Secrets in files, as options name them."""

from __future__ import annotations

import sys
from pathlib import Path

from annals.api.cli.outcome import UsageError


def read_secret_file(path: Path) -> str:
    """The secret in a file, without white space at its ends. Raises: UsageError."""
    if not path.is_file():
        raise UsageError(f"there is no file {path}.")
    try:
        return path.read_text(encoding="utf-8").strip()
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8 text.") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror or error}.") from None


def read_secret_input() -> str:
    """The secret on standard input, without white space at its ends. Raises: UsageError."""
    try:
        return sys.stdin.read().strip()
    except UnicodeDecodeError:
        raise UsageError("standard input is not UTF-8 text.") from None
