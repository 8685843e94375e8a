"""References to the latest version of a subject, as older registries keep them, become references to its number.

So what they refer to is written before, and stays the same when the subject gets further versions. Rule CSR-508.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from annals.domain.confluent.references import LATEST
from annals.domain.confluent.schema_versions import NamedReference
from annals.domain.confluent.subjects import Subject, parse_subject
from annals.projections.confluent_copy.subject_copy import SubjectCopy, VersionCopy


def numbered_copies(copies: Mapping[Subject, SubjectCopy]) -> Iterator[SubjectCopy]:
    """The copies whose references to the latest version can be numbered, with these numbers.

    References to subjects that are not among the copies, or have no live version there, stay as they are.
    """
    for copy in copies.values():
        if any(reference.version == LATEST for version in copy.versions for reference in version.references):
            versions = tuple(_numbered_version(copies, copy.subject, version) for version in copy.versions)
            yield replace(copy, versions=versions)


def _numbered_version(copies: Mapping[Subject, SubjectCopy], subject: Subject, version: VersionCopy) -> VersionCopy:
    references = tuple(
        reference._replace(version=_latest_number(copies, subject, version, reference))
        if reference.version == LATEST
        else reference
        for reference in version.references
    )
    return replace(version, references=references)


def _latest_number(
    copies: Mapping[Subject, SubjectCopy], subject: Subject, version: VersionCopy, reference: NamedReference
) -> int:
    """The highest live number, of those with lower ids if there are any: these are older than the reference."""
    target = parse_subject(reference.subject, subject.context)
    candidates = [one for one in copies[target].versions if not one.is_deleted] if target in copies else []
    if target == subject:
        candidates = [one for one in candidates if one.number < version.number]
    older = [one for one in candidates if one.id < version.id]
    return max((one.number for one in older or candidates), default=LATEST)
