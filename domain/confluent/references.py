"""References between schemas: the texts that they lead to (CSR-508)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from annals.domain.access.roles import CanRead, can_read_everything
from annals.domain.confluent.errors import invalid_schema
from annals.domain.confluent.schema_versions import NamedReference, SchemaVersion
from annals.domain.confluent.subject_versions import SubjectVersions
from annals.domain.confluent.subjects import group_xid, parse_subject

#: Returns the id of the Group of a context; None if there is none.
GroupOfContext = Callable[[str], str | None]
#: Returns the versions of a subject in a Group.
VersionsIn = Callable[[str, str], SubjectVersions]
#: The number in a reference that stands for the latest version.
LATEST: int = -1
_MAX_REFERENCES = 1000


class References:
    """Follows references. context: that of the schema, for unqualified ones."""

    def __init__(self, versions_in: VersionsIn, group: str, group_of_context: GroupOfContext) -> None:
        """group: the id of the context's Group."""
        self._versions_in = versions_in
        self._group = group
        self._group_of_context = group_of_context

    def numbered(
        self, references: Sequence[NamedReference], can_read: CanRead, *, only_live: bool
    ) -> tuple[NamedReference, ...]:
        """References with the numbers of their versions. only_live: they may not be soft-deleted.

        can_read: of who refers to them; what it does not see is not there. Raises: SchemaRegistryError.
        """
        return tuple(
            reference._replace(version=self._find(reference, self._group, only_live, can_read).number)
            for reference in references
        )

    def documents(self, references: Sequence[NamedReference]) -> tuple[tuple[str, str], ...]:
        """The name and the SHA-256 of each text, after those that it uses itself. Raises: SchemaRegistryError.

        What a schema refers to is a part of it for all who may read the schema, as the target of an xref is.
        """
        found: dict[str, str] = {}
        self._collect(references, self._group, found, ())
        return tuple(found.items())

    def _collect(
        self, references: Sequence[NamedReference], group: str, found: dict[str, str], path: tuple[str, ...]
    ) -> None:
        for reference in references:
            if reference.name in found or reference.name in path:
                continue
            if len(found) >= _MAX_REFERENCES:
                raise invalid_schema(f"The schema refers to more than {_MAX_REFERENCES} others")
            version = self._find(reference, group, False, can_read_everything)
            self._collect(version.references, version.group, found, (*path, reference.name))
            found[reference.name] = version.document

    def _find(self, reference: NamedReference, group: str, only_live: bool, can_read: CanRead) -> SchemaVersion:
        subject = parse_subject(reference.subject)
        is_qualified = reference.subject.startswith(":.")
        target_group = self._group_of_context(subject.context) if is_qualified else group
        version = None
        if target_group is not None and can_read(group_xid(target_group)):
            version = _version(self._versions_in(target_group, subject.name), reference.version, only_live)
        if version is None:
            raise invalid_schema(
                f'No schema reference found for subject "{reference.subject}" and version {reference.version}'
            )
        return version


def _version(versions: SubjectVersions, number: int, only_live: bool) -> SchemaVersion | None:
    if number == LATEST:
        return versions.latest
    candidates = versions.with_number(number)
    return next((version for version in candidates if version.is_live or not only_live), None)
