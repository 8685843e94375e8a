"""Which subjects are copied, and where to: one context or all, names with a prefix, into another context."""

from __future__ import annotations

from dataclasses import dataclass, replace

from annals.domain.confluent.subjects import Subject, parse_subject
from annals.projections.confluent_copy.subject_copy import SubjectCopy, VersionCopy


@dataclass(frozen=True, slots=True)
class SubjectSelection:
    """context: None for all. prefix: of names; with one, the settings of contexts are left out. into: a context."""

    context: str | None = None
    prefix: str = ""
    into: str | None = None

    def includes(self, subject: Subject) -> bool:
        """Whether a subject or context of the source is copied."""
        if self.context is not None and subject.context != self.context:
            return False
        if self.into is not None and self.context is None and not subject.name:
            return False  # several contexts have several settings, and there is one to write
        return subject.name.startswith(self.prefix) and bool(subject.name or not self.prefix)

    def moved(self, copy: SubjectCopy) -> SubjectCopy:
        """A subject as it is written: in its own context, or in another one with its references."""
        if self.into is None:
            return copy
        subject = Subject(self.into, copy.subject.name)
        versions = tuple(self._moved_version(copy.subject, version) for version in copy.versions)
        return replace(copy, subject=subject, versions=versions)

    def _moved_version(self, subject: Subject, version: VersionCopy) -> VersionCopy:
        """References to a copied context become references inside the new one."""
        references = []
        for reference in version.references:
            target = parse_subject(reference.subject, subject.context)
            is_copied = self.context is None or target.context == self.context
            references.append(reference._replace(subject=target.name) if is_copied else reference)
        return replace(version, references=tuple(references))


def source_name(place: str, selection: SubjectSelection) -> str:
    """The name by which later copies know what they have written. place: the URL or topic of the source.

    Contexts that are copied into one have different names, so that a copy of one leaves those of the others alone.
    """
    return place if selection.into is None else f"{place} {selection.context or '*'}"
