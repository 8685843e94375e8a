"""Copies subjects of this registry into another one, with their ids and numbers, by its mode IMPORT (CSR-1008).

The mode is set for each subject and put back. What is there already stays; a second run does what is missing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import quote

from annals.domain.confluent.schema_types import PROTOBUF
from annals.domain.confluent.settings import IMPORT, LEVEL, READWRITE
from annals.domain.confluent.subjects import Subject
from annals.domain.values.json_text import is_equal
from annals.projections.confluent_copy.bounded_map import bounded_map
from annals.projections.confluent_copy.copy_spool import CopySpool
from annals.projections.confluent_copy.read_copies import ReportAmount, SubjectSource, read_copies
from annals.projections.confluent_copy.report import CONFLICT, CREATED, EQUAL, FAILED, CopyReport
from annals.projections.confluent_copy.rest_api import (
    ABSENT,
    NO_DOCUMENT,
    RestApi,
    RestError,
    ask,
    ask_if_present,
    refusal,
    require_object,
)
from annals.projections.confluent_copy.rest_reader import ALIAS, RestReader
from annals.projections.confluent_copy.selection import SubjectSelection
from annals.projections.confluent_copy.subject_copy import SubjectCopy, VersionCopy, parse_version_copy
from annals.projections.confluent_copy.write_order import write_waves

#: What registries answer where no config or mode is set.
_DEFAULTS: Final[Mapping[str, Any]] = {"config": {LEVEL: "BACKWARD"}, "mode": READWRITE}
_NOT_PERMITTED: Final = 42205
#: The number of subjects that are written at once.
WRITERS: Final = 8
_OTHER_SETTING: Final = "another value is set there, which stays"
_NO_IMPORT: Final = "it has no mode IMPORT"
#: Seconds before each further look at a mode that was set.
_MODE_RETRY_SECONDS: Final = (0.2, 0.5, 1.0)
_NOT_COMPARED: Final = "not compared in a dry run, because the subject has an alias there"


class IdsNotKept(Exception):
    """The other registry gives ids of its own."""


class _Conflict(Exception):
    """The subject contradicts what is there."""


class _NotCompared(Exception):
    """A dry run cannot say what is there."""


@dataclass(frozen=True)
class ExportRun:
    """One run. target: the other registry. new_ids: let it give ids and numbers of its own."""

    source: SubjectSource
    target: RestApi
    report: CopyReport
    selection: SubjectSelection = field(default_factory=SubjectSelection)
    new_ids: bool = False
    is_dry: bool = False

    def run(self, report_read: ReportAmount, report_written: ReportAmount) -> None:
        """Copies everything that is missing. report_read, report_written: receive the numbers of subjects.

        Raises: RestError if the other registry does not answer; IdsNotKept.
        """
        with CopySpool() as spool:
            read_copies(self.source, self.selection, self.report, spool, report_read)
            copies = list(spool.outlines.values())
            done = 0
            with ThreadPoolExecutor(WRITERS) as pool:
                for wave in write_waves(copies):
                    for _ in bounded_map(pool, WRITERS, lambda one: self._write(spool.complete(one)), wave):
                        done += 1
                        report_written(min(done, len(copies)), len(copies))

    def _write(self, copy: SubjectCopy) -> None:
        try:
            there = RestReader(self.target).read(copy.subject)
            missing = self._missing(copy, there) if copy.versions else []
            if missing and not self.is_dry:
                with self._import_mode(copy, there), self._without_alias(there):
                    for version in missing:
                        self._register(copy.subject, version)
            self._report_versions(copy, missing)
            self._write_settings(copy, there)
        except _Conflict as conflict:
            self.report.add_refusal(copy, CONFLICT, str(conflict))
        except _NotCompared:
            self.report.add_refusal(copy, CREATED, _NOT_COMPARED)
        except RestError as error:
            if not error.status:
                raise
            self.report.add_refusal(copy, CONFLICT if error.code == _NOT_PERMITTED else FAILED, str(error))

    # --- what is missing ---------------------------------------------------------------------------------------------

    def _missing(self, copy: SubjectCopy, there: SubjectCopy) -> list[VersionCopy]:
        """The versions to register. Raises: _Conflict, _NotCompared, RestError."""
        by_number = {version.number: version for version in there.versions}
        missing = []
        for version in copy.versions:
            if self.new_ids:
                if self._found(there, version) is None:
                    missing.append(version)
                continue
            other = by_number.get(version.number)
            if other is None:
                self._check_id(copy.subject, version)
                missing.append(version)
            elif not self._is_same(there, version, other):
                raise _Conflict(f"version {version.number} is there with id {other.id} and another schema or id")
        return missing

    def _is_same(self, there: SubjectCopy, version: VersionCopy, other: VersionCopy) -> bool:
        """Whether a version is there. Texts may differ in form, so in doubt the other registry compares them."""
        if (version.id, version.type) != (other.id, other.type):
            return False
        has_same_guid = version.guid is not None and version.guid == other.guid
        if version.text == other.text or has_same_guid or _has_equal_content(version, other):
            return True  # without a request
        found = self._found(there, version)
        return found is not None and found.id == version.id

    def _found(self, there: SubjectCopy, version: VersionCopy) -> VersionCopy | None:
        """The version of a subject there with the same content. Raises: _NotCompared, RestError."""
        if there.config.get(ALIAS):
            known = next((one for one in there.versions if _content(one) == _content(version)), None)
            if known is not None:
                return known
            if self.is_dry:
                raise _NotCompared
        path = _subject_path(there.subject)
        with self._without_alias(there):
            answer = self.target.send("POST", f"{path}?deleted=true", _content(version))
        if answer.status != 200:  # Apicurio finds no text that has other white space
            return next((one for one in there.versions if _has_equal_content(version, one)), None)
        try:
            return parse_version_copy(answer.body, is_deleted=False)
        except (KeyError, TypeError, ValueError):
            raise RestError(f"POST {path}: {NO_DOCUMENT}", answer.status) from None

    def _check_id(self, subject: Subject, version: VersionCopy) -> None:
        """Raises: _Conflict if the id is that of another schema in this context."""
        path = f"/contexts/{quote(f':{subject.context}:', safe='')}/schemas/ids/{version.id}"
        holder = ask_if_present(self.target, path)
        if holder is None or self.new_ids:
            return
        holder = require_object(path, holder)
        guid, type = holder.get("guid"), holder.get("schemaType") or "AVRO"
        if guid is not None and version.guid is not None:
            is_same = guid == version.guid
        else:
            text = str(holder.get("schema"))
            is_same = type == version.type and (type == PROTOBUF or _is_equal_json(text, version.text))
        if not is_same:
            raise _Conflict(f"version {version.number} has id {version.id}, which is the id of another schema there")

    # --- writing -----------------------------------------------------------------------------------------------------

    @contextmanager
    def _import_mode(self, copy: SubjectCopy, there: SubjectCopy) -> Iterator[None]:
        """Sets the mode of a subject, and puts back the one before. One that a killed run has left is removed.

        Raises: IdsNotKept, RestError.
        """
        if self.new_ids:
            yield
            return
        path = f"/mode/{quote(copy.subject.qualified, safe='')}"
        answer = self.target.send("PUT", f"{path}?force=true", {"mode": IMPORT})
        if answer.status in ABSENT:
            raise IdsNotKept(_NO_IMPORT)
        if answer.status != 200:
            raise refusal("PUT", path, answer)
        try:
            self._require_import_mode(path)
        except (IdsNotKept, RestError):
            with suppress(RestError):  # it may be set all the same
                self._put_back_mode(path, copy, there)
            raise
        try:
            yield
        finally:
            self._put_back_mode(path, copy, there)

    def _require_import_mode(self, path: str) -> None:
        """Asks several times, because one of several nodes may lag behind. Raises: IdsNotKept, RestError."""
        for seconds in (*_MODE_RETRY_SECONDS, None):
            if require_object(path, ask_if_present(self.target, path) or {}).get("mode") == IMPORT:
                return
            if seconds is not None:
                time.sleep(seconds)
        raise IdsNotKept(_NO_IMPORT)

    def _put_back_mode(self, path: str, copy: SubjectCopy, there: SubjectCopy) -> None:
        """Sets the mode that a subject had before. path: of its mode. Raises: RestError."""
        if there.mode is not None and (there.mode != IMPORT or copy.mode == IMPORT):
            ask(self.target, "PUT", f"{path}?force=true", {"mode": there.mode})
        else:
            ask(self.target, "DELETE", path)

    @contextmanager
    def _without_alias(self, there: SubjectCopy) -> Iterator[None]:
        """Takes away the alias of a subject, which would lead its requests to another one, and puts it back.

        Raises: RestError.
        """
        alias = there.config.get(ALIAS)
        if not alias:
            yield
            return
        try:
            self._put_setting(there.subject, "config", {ALIAS: None})  # without an answer, it may be gone as well
            yield
        finally:
            self._put_setting(there.subject, "config", {ALIAS: alias})

    def _register(self, subject: Subject, version: VersionCopy) -> None:
        """Registers a version, and soft-deletes it if it is. Raises: IdsNotKept, RestError."""
        members = version.members()
        hidden = ("guid", "deleted", *(("id", "version") if self.new_ids else ()))
        body = {name: value for name, value in members.items() if name not in hidden}
        path = f"{_subject_path(subject)}/versions"
        answer = require_object(path, ask(self.target, "POST", path, body))
        if not self.new_ids and answer.get("id") != version.id:
            raise IdsNotKept(f"{subject.qualified} version {version.number} has id {answer.get('id')} there")
        if version.is_deleted:
            number = answer.get("version", version.number if not self.new_ids else "latest")
            ask(self.target, "DELETE", f"{path}/{number}")

    def _write_settings(self, copy: SubjectCopy, there: SubjectCopy) -> None:
        """Writes the settings that are missing; the mode last, because READONLY refuses everything else."""
        for setting, own, other in (("config", dict(copy.config), dict(there.config)), ("mode", copy.mode, there.mode)):
            outcome = self._setting_outcome(copy.subject, setting, own, other)
            if outcome is None:
                continue
            if outcome == CREATED and not self.is_dry:
                self._put_setting(copy.subject, setting, own)
            self.report.add_setting(copy.subject, setting, outcome, _OTHER_SETTING if outcome == CONFLICT else "")

    def _setting_outcome(self, subject: Subject, setting: str, own: Any, other: Any) -> str | None:
        """What happens to a setting; None if there is nothing to copy."""
        default = _DEFAULTS[setting] if not subject.name else None
        if not own or (own == default and not other):
            return None
        if own == other:
            return EQUAL
        is_unset = not other or other == default or (setting == "mode" and other == IMPORT and bool(subject.name))
        return CREATED if is_unset else CONFLICT

    def _put_setting(self, subject: Subject, setting: str, value: Any) -> None:
        scope = subject.qualified if subject.name or subject.context != "." else ""
        path = f"/{setting}/{quote(scope, safe='')}" if scope else f"/{setting}"
        if setting == "mode":
            ask(self.target, "PUT", f"{path}?force=true", {"mode": value})
        else:
            body = {"compatibility" if name == LEVEL else name: member for name, member in value.items()}
            ask(self.target, "PUT", path, body)

    # --- report ------------------------------------------------------------------------------------------------------

    def _report_versions(self, copy: SubjectCopy, missing: Sequence[VersionCopy]) -> None:
        for version in copy.versions:
            outcome = CREATED if version in missing else EQUAL
            self.report.add_version(copy.subject, version.number, version.id, outcome)


def _subject_path(subject: Subject) -> str:
    return f"/subjects/{quote(subject.qualified, safe='')}"


def _content(version: VersionCopy) -> dict[str, Any]:
    """The members of a version that registries compare."""
    hidden = ("version", "id", "guid", "deleted")
    return {name: value for name, value in version.members().items() if name not in hidden}


def _has_equal_content(version: VersionCopy, other: VersionCopy) -> bool:
    """Whether versions have equal members apart from the form of their JSON. Forms of Protobuf are not compared."""
    if version.type != other.type or version.type == PROTOBUF:
        return False
    if (version.references, version.extras) != (other.references, other.extras):
        return False
    return _is_equal_json(version.text, other.text)


def _is_equal_json(text: str, other: str) -> bool:
    """Whether texts are the same or, unless they are nested too deeply, equal as JSON."""
    try:
        return text == other or is_equal(json.loads(text), json.loads(other))
    except (ValueError, RecursionError):
        return False
