"""Refuses arguments, options and settings that are not UTF-8, because neither JSON nor a database can have them.

Arguments and options that name files may have any bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

import typer

from annals.api.cli.outcome import UsageError
from annals.api.cli.shell_completion import PROGRAM

#: What the names of all settings begin with. The settings themselves take long to import.
_SETTING_PREFIX: Final = f"{PROGRAM.upper()}_"

_Callback = Callable[[Any, Any, Any], Any]


def require_text_values(command: Any) -> None:
    """Makes a command, or each command of a group, refuse arguments and options that are not UTF-8."""
    for parameter in command.params:
        parameter.callback = _checked(parameter.callback)
    for each in getattr(command, "commands", {}).values():
        require_text_values(each)


def require_text_settings() -> None:
    """Raises: UsageError for a setting in the environment that is not UTF-8. It may be a secret and is not shown."""
    for name, value in os.environ.items():
        if name.upper().startswith(_SETTING_PREFIX) and not _is_text(name + value):
            raise UsageError(f"{name}: the variable is not UTF-8 text.")


def _checked(callback: _Callback | None) -> _Callback:
    """The callback of a parameter, which also checks its value."""

    def check(context: Any, parameter: Any, value: Any) -> Any:
        for text in value if isinstance(value, list | tuple) else (value,):
            if isinstance(text, str) and not _is_text(text):
                raise typer.BadParameter("it is not UTF-8 text.")
        return callback(context, parameter, value) if callback else value

    return check


def _is_text(text: str) -> bool:
    """Whether Python could decode all bytes of a text from the system. It keeps other bytes as lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
