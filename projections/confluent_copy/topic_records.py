"""The subjects in the records of a `_schemas` topic, or of a dump of one (CSR-1010).

The last record of a key counts, in the order of records: a schema, its deletion, settings, deletions of subjects.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from annals.domain.confluent.settings import LEVEL
from annals.domain.confluent.subjects import DEFAULT_CONTEXT, Subject, parse_subject
from annals.projections.confluent_copy.subject_copy import SubjectCopy, VersionCopy, parse_version_copy


class TopicRecord(NamedTuple):
    """value: None for a tombstone. place: where it is, for errors."""

    key: Mapping[str, Any]
    value: Mapping[str, Any] | None
    place: str = ""


class InvalidRecord(ValueError):
    """A record is none of a schema registry; the message says why."""


def parse_record(key: bytes | str | None, value: bytes | str | None) -> TopicRecord:
    """A record from its JSON. Raises: InvalidRecord."""
    try:
        parsed_key = json.loads(key or b"null")
        parsed_value = json.loads(value) if value else None
    except (ValueError, RecursionError) as error:
        raise InvalidRecord(f"it is not JSON: {error}") from None
    if not isinstance(parsed_key, dict) or not isinstance(parsed_key.get("keytype"), str):
        raise InvalidRecord("its key has no keytype")
    if not isinstance(parsed_value, dict | None):
        raise InvalidRecord("its value is no object")
    return TopicRecord(parsed_key, parsed_value)


def dump_records(lines: Iterable[str]) -> Iterator[TopicRecord]:
    """The records of a dump: a line has key and value with a tab between them, or is an object with `key` and `value`.

    Raises: InvalidRecord, with the number of the line.
    """
    for number, line in enumerate(lines, 1):
        text = line.rstrip("\r\n")
        if not text:
            continue
        try:
            yield _dump_record(text)._replace(place=f"line {number}: ")
        except InvalidRecord as error:
            raise InvalidRecord(f"line {number}: {error}") from None


def _dump_record(text: str) -> TopicRecord:
    if "\t" in text:
        key, _, value = text.partition("\t")
        return parse_record(key, None if value == "null" else value)
    try:
        members = json.loads(text)
        parts = [
            part if isinstance(part, str | None) else json.dumps(part)
            for part in (members["key"], members.get("value"))
        ]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise InvalidRecord("it has neither a tab between key and value, nor members key and value") from None
    return parse_record(*parts)


class TopicSource:
    """A `SubjectSource` of records."""

    def __init__(self, records: Iterable[TopicRecord]) -> None:
        """Raises: InvalidRecord, with the place of the record if it has one."""
        self._versions: dict[Subject, dict[int, VersionCopy]] = {}
        self._configs: dict[Subject, Mapping[str, Any]] = {}
        self._modes: dict[Subject, str] = {}
        for record in records:
            try:
                self._apply(record)
            except InvalidRecord as error:
                raise InvalidRecord(f"{record.place}{error}") from None

    def subjects(self) -> Iterator[Subject]:
        """See `SubjectSource`."""
        found = dict.fromkeys((*self._configs, *self._modes, *(one for one, held in self._versions.items() if held)))
        contexts = dict.fromkeys(Subject(subject.context, "") for subject in found)
        yield from dict.fromkeys((*contexts, *found))

    def read_all(self, subjects: Iterable[Subject]) -> Iterator[tuple[Subject, SubjectCopy]]:
        """See `SubjectSource`; everything can be read."""
        yield from ((subject, self.read(subject)) for subject in subjects)

    def read(self, subject: Subject) -> SubjectCopy:
        """A subject, empty if the records have none of it."""
        versions = self._versions.get(subject, {})
        return SubjectCopy(
            subject,
            tuple(versions[number] for number in sorted(versions)),
            self._configs.get(subject, {}),
            self._modes.get(subject),
        )

    def _apply(self, record: TopicRecord) -> None:
        match record.key["keytype"]:
            case "SCHEMA":
                self._apply_schema(record)
            case "CONFIG":
                self._set(self._configs, record, _config(record.value))
            case "MODE":
                self._set(self._modes, record, _mode(record.value))
            case "DELETE_SUBJECT":
                self._delete_subject(record)
            case "CLEAR_SUBJECT":
                self._clear_subject(_scope(record.key))
            case _:
                pass  # NOOP, and what later programs write

    def _apply_schema(self, record: TopicRecord) -> None:
        """A tombstone deletes for good, `deleted` softly."""
        versions = self._versions.setdefault(_scope(record.key), {})
        if record.value is None:
            versions.pop(_number(record.key), None)
            return
        try:
            version = parse_version_copy(record.value, is_deleted=record.value.get("deleted") is True)
        except KeyError as error:
            raise InvalidRecord(f"the value of {json.dumps(record.key)} has no {error}") from None
        except (TypeError, ValueError) as error:
            raise InvalidRecord(f"the value of {json.dumps(record.key)} is not valid: {error}") from None
        versions[version.number] = version

    def _clear_subject(self, subject: Subject) -> None:
        """Deletes the versions for good that are soft-deleted; the live ones stay."""
        versions = self._versions.get(subject, {})
        self._versions[subject] = {number: version for number, version in versions.items() if not version.is_deleted}

    def _delete_subject(self, record: TopicRecord) -> None:
        """Soft-deletes the versions up to a number."""
        if record.value is None:
            return
        last = _number(record.value)
        versions = self._versions.get(_scope(record.key), {})
        for number, version in versions.items():
            if number <= last:
                versions[number] = _deleted(version)

    def _set(self, settings: dict[Subject, Any], record: TopicRecord, value: Any) -> None:
        if value:
            settings[_scope(record.key)] = value
        else:
            settings.pop(_scope(record.key), None)


def _scope(key: Mapping[str, Any]) -> Subject:
    """The subject of a key; the default context for settings of none."""
    name = key.get("subject")
    if name is None:
        return Subject(DEFAULT_CONTEXT, "")
    return parse_subject(str(name))


def _number(members: Mapping[str, Any]) -> int:
    number = members.get("version")
    if not isinstance(number, int):
        raise InvalidRecord(f"{json.dumps(members)} has no version")
    return number


def _mode(value: Mapping[str, Any] | None) -> str | None:
    mode = (value or {}).get("mode")
    if not isinstance(mode, str | None):
        raise InvalidRecord(f"{json.dumps(mode)} is no mode")
    return mode


def _config(value: Mapping[str, Any] | None) -> dict[str, Any]:
    members = {name: member for name, member in (value or {}).items() if member is not None and name != "subject"}
    level = members.pop("compatibilityLevel", None) or members.pop("compatibility", None)
    return {**({LEVEL: level} if level else {}), **members}


def _deleted(version: VersionCopy) -> VersionCopy:
    return replace(version, is_deleted=True)
