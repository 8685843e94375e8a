"""Settings whose value is JSON, or the path of a JSON file."""

from __future__ import annotations

from pathlib import Path


def is_inline_json(setting: str) -> bool:
    """Whether a setting is a JSON object, not a path."""
    return setting.lstrip().startswith("{")


def load_json_text(setting: str) -> str:
    """The JSON text of a setting. Raises: ValueError for a file that cannot be read."""
    return setting if is_inline_json(setting) else read_file(setting)


def read_file(path: str) -> str:
    """The content of a file. Raises: ValueError."""
    try:
        return Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from None
