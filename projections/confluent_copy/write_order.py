"""The order in which subjects are written: referenced ones first, each whole where references allow it (CSR-1003)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from annals.domain.confluent.subjects import Subject, parse_subject
from annals.projections.confluent_copy.subject_copy import SubjectCopy, VersionCopy

_Version = tuple[Subject, int]


def write_waves(copies: Iterable[SubjectCopy]) -> Iterator[list[SubjectCopy]]:
    """Groups of subjects; those of one group do not depend on each other.

    A subject whose versions refer to each other, or to a subject that refers to it, comes in several parts. What
    refers to a version that is not among the copies waits for nothing.
    """
    remaining = {copy.subject: copy for copy in copies}
    pending: set[_Version] = {(copy.subject, one.number) for copy in remaining.values() for one in copy.versions}
    while remaining:
        wave = [copy for copy in remaining.values() if _ready(copy, pending) == len(copy.versions)]
        if not wave:
            wave = [part for copy in remaining.values() if (part := _ready_part(copy, pending)).versions]
        if not wave:
            wave = list(remaining.values())  # a circle, which the registry will refuse
        yield wave
        for part in wave:
            pending.difference_update((part.subject, one.number) for one in part.versions)
            rest = remaining[part.subject].versions[len(part.versions) :]
            if rest:
                remaining[part.subject] = replace(remaining[part.subject], versions=rest)
            else:
                del remaining[part.subject]


def _ready(copy: SubjectCopy, pending: set[_Version]) -> int:
    """The number of leading versions that refer to nothing that is still to be written."""
    for place, version in enumerate(copy.versions):
        if any(target in pending for target in _targets(copy.subject, version)):
            return place
    return len(copy.versions)


def _ready_part(copy: SubjectCopy, pending: set[_Version]) -> SubjectCopy:
    return replace(copy, versions=copy.versions[: _ready(copy, pending)])


def _targets(subject: Subject, version: VersionCopy) -> Iterator[_Version]:
    for reference in version.references:
        yield parse_subject(reference.subject, subject.context), reference.version
