"""The settings in force as they may be shown: where each value comes from, with secrets masked."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from dotenv import dotenv_values
from pydantic_settings import BaseSettings
from sqlalchemy.engine import make_url

from annals.api.auth import json_settings
from annals.api.settings.setting_info import SettingInfo, setting_infos, value_text

ENV_FILE: Final = ".env"
#: The kinds of sources.
SOURCES: Final = ("flag", "environment", "file", "default")
_MASK: Final = "***"
#: Names whose values are secrets: of settings of Spark, which itself hides these, and in the queries of URLs.
_SECRET_NAMES: Final = r"[^&=]*(?:secret|password|token|key)[^&=]*"
_SECRET_NAME: Final = re.compile(_SECRET_NAMES, re.IGNORECASE)
#: The user part of a URL, and secret values in its query.
_URL_SECRETS: Final = re.compile(rf"(?<=://)[^/@]*(?=@)|(?<=[?&])({_SECRET_NAMES}=)[^&]*", re.IGNORECASE)


class ShownSetting(NamedTuple):
    """One setting in force. value: as text, masked; empty if unset. source: where it comes from."""

    info: SettingInfo
    value: str
    source: str

    @property
    def source_kind(self) -> str:
        """The kind of the source: one of `SOURCES`."""
        return "flag" if self.source.startswith("flag ") else "file" if self.source == ENV_FILE else self.source


def shown_settings(settings: BaseSettings, flags: Collection[str] = ()) -> Iterator[ShownSetting]:
    """All settings of one object. flags: the fields that come from flags of the command."""
    kind = type(settings)
    find_source = partial(_source, in_environment=_names(os.environ), in_file=_names(file_values()))
    for field, info in zip(kind.model_fields, setting_infos(kind), strict=True):
        value = getattr(settings, field)
        text = "" if value is None else _MASKS.get(info.name, value_text)(value)
        source = f"flag --{field.replace('_', '-')}" if field in flags else find_source(info.name)
        yield ShownSetting(info, text, source)


def file_values() -> Mapping[str, str | None]:
    """The variables in the file `.env` of the current folder; empty without one."""
    return dotenv_values(ENV_FILE, encoding="utf-8") if Path(ENV_FILE).is_file() else {}


def mask_password(database: str) -> str:
    """A database URL with `***` in place of its password, in the user part and in the query."""
    url = make_url(database)
    secrets = {name: _MASK for name in url.query if "password" in name.lower()}
    return url.update_query_dict(secrets).render_as_string(hide_password=True).replace("%2A", "*")


def _names(variables: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(name.upper() for name in variables)


def _source(variable: str, in_environment: frozenset[str], in_file: frozenset[str]) -> str:
    return "environment" if variable in in_environment else ENV_FILE if variable in in_file else "default"


def _mask_inline_json(setting: str) -> str:
    return _MASK if json_settings.is_inline_json(setting) else setting


def _mask_url(url: str) -> str:
    return _URL_SECRETS.sub(lambda found: (found[1] or "") + _MASK, url)


def _mask_members(members: Mapping[str, str]) -> str:
    shown = {name: _MASK if _SECRET_NAME.search(name) else value for name, value in members.items()}
    return json.dumps(shown) if shown else ""


_MASKS: Final[Mapping[str, Callable[[Any], str]]] = {
    "ANNALS_DATABASE": mask_password,
    "ANNALS_TOKENS": _mask_inline_json,
    "ANNALS_LINKS": _mask_inline_json,
    "ANNALS_MASTER_KEY": lambda _: _MASK,
    "ANNALS_JWT_KEYS": _mask_url,
    "ANNALS_SEGMENTS": _mask_url,
    "ANNALS_SPARK_CONF": _mask_members,
}
