"""Reads subjects of a schema registry over its REST API (CSR-1001, CSR-1002).

Versions come in pages of `/schemas`, where the registry has that path: one request for a thousand of them instead of
one for each. Configs and modes have no such list, so a subject takes two requests all the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import groupby
from typing import Any, Final
from urllib.parse import quote

from annals.domain.confluent.settings import LEVEL, NONE_LEVEL
from annals.domain.confluent.subjects import DEFAULT_CONTEXT, GLOBAL_CONTEXT, Subject, parse_subject
from annals.projections.confluent_copy.bounded_map import bounded_map
from annals.projections.confluent_copy.rest_api import NO_DOCUMENT, RestApi, RestError, ask_if_present, pages
from annals.projections.confluent_copy.subject_copy import SubjectCopy, VersionCopy, parse_number, parse_version_copy

#: The number of requests at once.
READERS: Final = 8
#: The member of a subject's config that names the subject for which its name stands below `/subjects` (CSR-312).
ALIAS: Final = "alias"
#: The list of contexts of Apicurio, which has none, in each release; others name the default context without colons.
_APICURIO_CONTEXTS: Final = [f":{DEFAULT_CONTEXT}:"]
_OK: Final = 200


class RestReader:
    """The subjects of one registry. asof: a moment, for a registry that knows the past (CSR-905)."""

    def __init__(self, api: RestApi, asof: str | None = None) -> None:
        self._api = api
        self._asof = f"asof={quote(asof, safe='')}" if asof is not None else ""
        #: Whether requests for subjects with slashes reach them; None until one was tried.
        self._keeps_paths: bool | None = None

    def subjects(self) -> Iterator[Subject]:
        """All contexts, then all subjects, also soft-deleted ones; some maybe twice. Raises: RestError."""
        contexts = self._contexts()
        if contexts is None:
            yield Subject(DEFAULT_CONTEXT, "")
        else:
            yield from (Subject(context, "") for context in dict.fromkeys((GLOBAL_CONTEXT, DEFAULT_CONTEXT, *contexts)))
        yield from self._listed_subjects()

    def read_all(self, subjects: Iterable[Subject]) -> Iterator[tuple[Subject, SubjectCopy | RestError]]:
        """See `SubjectSource`."""
        wanted = frozenset(subjects)
        listed: set[Subject] = set()
        scattered: set[Subject] = set()
        _ = self._inherited_mode, self._answers_none  # before all threads ask for them at once
        with ThreadPoolExecutor(READERS) as pool:
            for subject, outcome in bounded_map(pool, READERS, self._read_listed, self._listed_versions(wanted)):
                if subject in listed:  # the list has it in several places
                    scattered.add(subject)
                    continue
                listed.add(subject)
                yield subject, outcome
            yield from bounded_map(pool, READERS, self._read_or_error, (wanted - listed) | scattered)

    def read(self, subject: Subject) -> SubjectCopy:
        """A subject with its versions and settings, empty if it is not there. Raises: RestError."""
        return self._read_subject(subject, ())

    def _read_or_error(self, subject: Subject, listed: Sequence[Any] = ()) -> tuple[Subject, SubjectCopy | RestError]:
        """Raises: RestError if there is no answer at all; the next request would get none either."""
        try:
            copy = self._read_subject(subject, listed)
            if "/" in subject.name and not copy.versions and not copy.config.get(ALIAS):
                self._require_gone(subject)
            return subject, copy
        except RestError as error:
            if not error.status:
                raise
            return subject, error

    def _read_subject(self, subject: Subject, listed: Sequence[Any]) -> SubjectCopy:
        path = self._path(subject)
        read_config = self._read(f"/config{path}")
        config = _config_members(read_config) if read_config is not None else {}
        mode = self._mode(path)
        if not subject.name:
            return SubjectCopy(subject, (), config, mode)
        if config.get(LEVEL) == NONE_LEVEL and self._answers_none:
            del config[LEVEL]
        has_alias = bool(config.get(ALIAS))
        versions = tuple(self._versions(subject, listed, has_alias=has_alias))
        if "/" in subject.name and versions and not has_alias and not self._keeps_paths:
            self._require_kept_path(subject, versions[-1].number)
        return SubjectCopy(subject, versions, config, mode if mode != self._inherited_mode else None)

    def _require_kept_path(self, subject: Subject, number: int) -> None:
        """Checks that the path of a subject with slashes leads to it. Behind a proxy that decodes paths, what was read
        as its config and its mode is nothing, or that of another subject. Raises: RestError."""
        path = f"/subjects{self._path(subject)}/versions/{number}"
        if _listed_subject(self._read(f"{path}?deleted=true")) == subject:
            self._keeps_paths = True
        else:
            self._require_gone(subject)

    def _require_gone(self, subject: Subject) -> None:
        """Checks that a subject to which its path does not lead is not in the list any more.

        The list is read once: behind a proxy that decodes paths, all subjects with slashes are out of reach.
        Raises: RestError.
        """
        if self._keeps_paths is False or subject in self._listed_subjects():
            self._keeps_paths = False
            raise RestError(
                f"GET /subjects{self._path(subject)} does not lead to it: a proxy before the registry decodes paths",
                _OK,
            )

    def _mode(self, path: str) -> str | None:
        members = self._read(f"/mode{path}")
        return str(members["mode"]) if isinstance(members, dict) and members.get("mode") else None

    @cached_property
    def _inherited_mode(self) -> str | None:
        """The mode that is none of a subject's own: registries without contexts answer the global one for each."""
        return self._mode("") if self._contexts() is None else None

    @cached_property
    def _answers_none(self) -> bool:
        """Whether the level of a subject that has none of its own is answered as NONE, although the global one counts.

        Apicurio does that. Some of its releases can say which level counts, but not all.
        """
        return self._listed_contexts() == _APICURIO_CONTEXTS

    def _contexts(self) -> list[str] | None:
        """The names of contexts; None from a registry without contexts. Raises: RestError."""
        contexts = self._listed_contexts()
        return contexts if contexts != _APICURIO_CONTEXTS else None

    def _listed_contexts(self) -> list[str] | None:
        """The names of contexts as they are listed; None without a list. Raises: RestError."""
        contexts = ask_if_present(self._api, self._with("/contexts"))
        if not isinstance(contexts, list):
            return None
        if not all(isinstance(context, str) for context in contexts):
            raise RestError(f"GET /contexts: {NO_DOCUMENT}", _OK)
        return contexts

    def _listed_subjects(self) -> Iterator[Subject]:
        """All subjects, also soft-deleted ones; some maybe twice. Raises: RestError."""
        names = pages(self._api, "/subjects", self._with("deleted=true", "&").lstrip("&"))
        return (parse_subject(str(name)) for name in names)

    # --- versions ----------------------------------------------------------------------------------------------------

    def _listed_versions(self, wanted: Collection[Subject]) -> Iterator[tuple[Subject, list[Any]]]:
        """The versions of subjects as they stand together in the list of all schemas; nothing if there is no list."""
        if not any(subject.name for subject in wanted):
            return
        prefix = f"subjectPrefix={quote(':*:')}&" if self._contexts() is not None else ""
        try:
            listed = pages(self._api, "/schemas", self._with(f"{prefix}deleted=true", "&"))
            for subject, members in groupby(listed, _listed_subject):
                found = list(members)
                if subject is not None and subject in wanted:
                    yield subject, found
        except RestError as error:
            if not error.status:
                raise
            # Registries of other makes answer with all kinds of errors here. Each subject is read alone then.

    def _read_listed(self, listed: tuple[Subject, list[Any]]) -> tuple[Subject, SubjectCopy | RestError]:
        subject, found = listed
        return self._read_or_error(subject, found)

    def _versions(self, subject: Subject, listed: Sequence[Any], *, has_alias: bool) -> Iterator[VersionCopy]:
        """The versions by number. listed: what the list of all schemas has of them.

        has_alias: below `/subjects` its name stands for another subject, so that only the list has its own versions.
        """
        path = f"/subjects{self._path(subject)}/versions"
        try:
            found = {parse_number(members["version"]): members for members in listed}
            if not found or not _says_deleted(found):  # an older registry, whose list may be without deleted ones
                found = self._own_list(subject, "deleted=true") if has_alias else self._each_version(path, found)
            if _says_deleted(found):
                live = {number for number, members in found.items() if members["deleted"] is not True}
            else:
                live = set(self._own_list(subject) if has_alias else self._read(path) or ())
            for number, members in sorted(found.items()):
                yield parse_version_copy(members, is_deleted=number not in live)
        except (KeyError, TypeError, ValueError):
            raise RestError(f"GET {path}: {NO_DOCUMENT}", _OK) from None

    def _each_version(self, path: str, listed: Mapping[int, Any]) -> dict[int, Any]:
        """The versions below a path by number, those that are not listed with a request each.

        Raises: RestError for a number that is answered with nothing, and not because it was deleted meanwhile.
        """
        all_numbers = f"{path}?deleted=true"
        numbers = sorted(self._read(all_numbers) or ())
        read = {number: listed.get(number) or self._read(f"{path}/{number}?deleted=true") for number in numbers}
        found = {number: members for number, members in read.items() if members is not None}
        missing = read.keys() - found.keys()
        if missing and (hidden := missing.intersection(self._read(all_numbers) or ())):
            raise RestError(f"GET {path}/{min(hidden)}: it is in the list of versions, and cannot be read", _OK)
        return found

    def _own_list(self, subject: Subject, parameters: str = "") -> dict[int, Any]:
        """The versions of one subject in the list of all schemas, by number."""
        query = "&".join(filter(None, (f"subjectPrefix={quote(subject.qualified, safe='')}", parameters)))
        listed = pages(self._api, "/schemas", self._with(query, "&"))
        return {parse_number(members["version"]): members for members in listed if _listed_subject(members) == subject}

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


def _says_deleted(found: Mapping[int, Any]) -> bool:
    """Whether versions say if they are soft-deleted."""
    return all("deleted" in members for members in found.values())


def _listed_subject(members: Any) -> Subject | None:
    """The subject of a member of the list of schemas; None if that is none."""
    name = members.get("subject") if isinstance(members, dict) else None
    return parse_subject(name) if isinstance(name, str) else None


def _config_members(config: Any) -> dict[str, Any]:
    """The members of a config as a copy writes them: the level under one name."""
    if not isinstance(config, dict):
        raise RestError(f"GET /config: {NO_DOCUMENT}", _OK)
    level = config.get(LEVEL) or config.get("compatibility")
    others = {
        name: value for name, value in config.items() if name not in (LEVEL, "compatibility") and value is not None
    }
    return {**({LEVEL: level} if level else {}), **others}
