"""Reads subjects of a schema registry over its REST API: rows R2, R5, R7, R19 to R21 (CSR-1001, CSR-1002)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from annals.domain.confluent.settings import LEVEL
from annals.domain.confluent.subjects import DEFAULT_CONTEXT, GLOBAL_CONTEXT, Subject, parse_subject
from annals.projections.confluent_copy.rest_api import RestApi, RestError, ask_if_present, pages
from annals.projections.confluent_copy.subject_copy import SubjectCopy, VersionCopy, parse_version_copy

_NO_DOCUMENT: Final = "its answer is not that of a schema registry"


class RestReader:
    """The subjects of one registry. asof: a moment, for a registry that knows the past (CSR-905)."""

    def __init__(self, api: RestApi, asof: str | None = None) -> None:
        self._api = api
        self._asof = f"asof={quote(asof, safe='')}" if asof is not None else ""

    def subjects(self) -> Iterator[Subject]:
        """All contexts, then all subjects, also soft-deleted ones. Raises: RestError."""
        contexts = ask_if_present(self._api, self._with("/contexts"))
        if contexts is None:
            yield Subject(DEFAULT_CONTEXT, "")
        else:
            yield from (Subject(context, "") for context in dict.fromkeys((GLOBAL_CONTEXT, DEFAULT_CONTEXT, *contexts)))
        for name in pages(self._api, "/subjects", self._with("deleted=true", "&").lstrip("&")):
            yield parse_subject(str(name))

    def read(self, subject: Subject) -> SubjectCopy:
        """A subject with its versions and settings, empty if it is not there. Raises: RestError."""
        path = self._path(subject)
        config = self._read(f"/config{path}")
        mode = self._read(f"/mode{path}")
        return SubjectCopy(
            subject,
            tuple(self._versions(subject)) if subject.name else (),
            _config_members(config) if config is not None else {},
            str(mode["mode"]) if isinstance(mode, dict) and mode.get("mode") else None,
        )

    def _versions(self, subject: Subject) -> Iterator[VersionCopy]:
        path = f"/subjects{self._path(subject)}/versions"
        found = []
        for number in sorted(self._read(f"{path}?deleted=true") or ()):
            members = self._read(f"{path}/{number}?deleted=true")
            if members is not None:  # it was deleted for good meanwhile
                found.append(members)
        live: set[int] | None = None
        if not all(isinstance(one, dict) and "deleted" in one for one in found):
            live = set(self._read(path) or ())  # an older registry does not say which ones are deleted
        for members in found:
            try:
                is_deleted = members["deleted"] is True if live is None else members["version"] not in live
                yield parse_version_copy(members, is_deleted=is_deleted)
            except (KeyError, TypeError, ValueError):
                raise RestError(f"GET {path}: {_NO_DOCUMENT}") from None

    def _path(self, subject: Subject) -> str:
        """The segment of a subject or context; none for the default context, whose config is the global one."""
        if subject == Subject(DEFAULT_CONTEXT, ""):
            return ""
        return f"/{quote(subject.qualified, safe='')}"

    def _read(self, path: str) -> Any:
        return ask_if_present(self._api, self._with(path))

    def _with(self, path: str, separator: str | None = None) -> str:
        """A path or a query with the moment."""
        if not self._asof:
            return path
        return f"{path}{separator or ('&' if '?' in path else '?')}{self._asof}"


def _config_members(config: Any) -> Mapping[str, Any]:
    """The members of a config as a copy writes them: the level under one name."""
    if not isinstance(config, dict):
        raise RestError(f"GET /config: {_NO_DOCUMENT}")
    level = config.get(LEVEL) or config.get("compatibility")
    others = {
        name: value for name, value in config.items() if name not in (LEVEL, "compatibility") and value is not None
    }
    return {**({LEVEL: level} if level else {}), **others}
