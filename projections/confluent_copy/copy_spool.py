"""Subjects that were read and are not written yet, in a temporary file: their texts may not fit into memory."""

from __future__ import annotations

import pickle
from dataclasses import replace
from tempfile import TemporaryFile
from threading import Lock
from typing import NamedTuple, Self

from annals.domain.confluent.subjects import Subject
from annals.projections.confluent_copy.subject_copy import SubjectCopy, VersionCopy


class _Place(NamedTuple):
    offset: int
    size: int


class CopySpool:
    """Subjects by name; memory has only what says in which order they are written. Any number of threads may read."""

    def __init__(self) -> None:
        self._file = TemporaryFile()  # noqa: SIM115 - closed by `__exit__`
        self._lock = Lock()
        self._places: dict[Subject, _Place] = {}
        #: The subjects with numbers, ids and references of their versions, and without texts.
        self.outlines: dict[Subject, SubjectCopy] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def add(self, copy: SubjectCopy) -> None:
        """Adds a subject, which replaces one of the same name."""
        content = pickle.dumps(copy, pickle.HIGHEST_PROTOCOL)
        with self._lock:
            offset = self._file.seek(0, 2)
            self._file.write(content)
        self._places[copy.subject] = _Place(offset, len(content))
        self.outlines[copy.subject] = replace(copy, versions=tuple(map(_outline, copy.versions)))

    def discard(self, subject: Subject) -> None:
        """Removes a subject, if it was added."""
        self.outlines.pop(subject, None)

    def size(self, subject: Subject) -> int:
        """About how many bytes a subject takes; 0 for one that was not added."""
        place = self._places.get(subject)
        return place.size if place is not None else 0

    def complete(self, outline: SubjectCopy) -> SubjectCopy:
        """The subject with the texts of those versions that an outline has, and its references."""
        if not outline.versions:
            return outline
        place = self._places[outline.subject]
        with self._lock:
            self._file.seek(place.offset)
            content = self._file.read(place.size)
        versions = {version.number: version for version in pickle.loads(content).versions}
        completed = (replace(versions[one.number], references=one.references) for one in outline.versions)
        return replace(outline, versions=tuple(completed))


def _outline(version: VersionCopy) -> VersionCopy:
    return replace(version, text="", extras={}, guid=None)
