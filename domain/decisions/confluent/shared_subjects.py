"""Subjects whose Resource has an xref: they show the versions of another subject, and are not written (CSR-909)."""

from __future__ import annotations

from annals.domain.confluent.errors import not_permitted
from annals.domain.confluent.schema_registry import SchemaRegistry
from annals.domain.confluent.subjects import Subject


def check_not_shared(registry: SchemaRegistry, group: str, subject: Subject) -> None:
    """Raises: SchemaRegistryError for a subject that shows the versions of another one. group: of its context."""
    resource = registry.resource(group, subject.name)
    target = registry.xref(resource) if resource is not None else None
    if target is not None:
        raise not_permitted(
            f"Subject {subject.qualified} shows the versions of {target}, and can be changed there only"
        )
