"""Refusals of Confluent's API: a number whose first three digits are the HTTP status, and a message (CSR-106)."""

from __future__ import annotations

from typing import Final

_STATUS_DIGITS: Final = 3


class SchemaRegistryError(Exception):
    """A refused request. code: as Confluent's clients know it; one of three digits is the status itself."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def status(self) -> int:
        """The HTTP status."""
        return int(str(self.code)[:_STATUS_DIGITS])


def subject_not_found(subject: str) -> SchemaRegistryError:
    return SchemaRegistryError(40401, f"Subject '{subject}' not found.")


def version_not_found(version: int | str) -> SchemaRegistryError:
    return SchemaRegistryError(40402, f"Version {version} not found.")


def schema_not_found(schema: int | str | None = None) -> SchemaRegistryError:
    return SchemaRegistryError(40403, "Schema not found" if schema is None else f"Schema {schema} not found")


def subject_soft_deleted(subject: str) -> SchemaRegistryError:
    return SchemaRegistryError(40404, f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently")


def subject_not_soft_deleted(subject: str) -> SchemaRegistryError:
    return SchemaRegistryError(40405, f"Subject '{subject}' was not deleted first before being permanently deleted")


def version_soft_deleted(subject: str, version: int) -> SchemaRegistryError:
    return SchemaRegistryError(
        40406,
        f"Subject '{subject}' Version {version} was soft deleted. Set permanent=true to delete permanently",
    )


def version_not_soft_deleted(subject: str, version: int) -> SchemaRegistryError:
    return SchemaRegistryError(
        40407, f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted"
    )


def no_subject_config(subject: str) -> SchemaRegistryError:
    return SchemaRegistryError(40408, f"Subject '{subject}' does not have subject-level compatibility configured")


def no_subject_mode(subject: str) -> SchemaRegistryError:
    return SchemaRegistryError(40409, f"Subject '{subject}' does not have subject-level mode configured")


def invalid_schema(reason: str) -> SchemaRegistryError:
    return SchemaRegistryError(42201, reason)


def invalid_version(version: str) -> SchemaRegistryError:
    return SchemaRegistryError(
        42202,
        f"The specified version '{version}' is not a valid version id."
        ' Allowed values are between [1, 2^31-1] and the string "latest"',
    )


def invalid_compatibility(level: str) -> SchemaRegistryError:
    return SchemaRegistryError(
        42203,
        f"Invalid compatibility level {level}. Valid values are none, backward, forward, full, backward_transitive,"
        " forward_transitive, and full_transitive",
    )


def invalid_mode(mode: str) -> SchemaRegistryError:
    return SchemaRegistryError(
        42204, f"Invalid mode {mode}. Valid values are READWRITE, READONLY, READONLY_OVERRIDE, IMPORT, and FORWARD"
    )


def not_permitted(reason: str) -> SchemaRegistryError:
    return SchemaRegistryError(42205, reason)


def is_referenced(subject: str, version: int) -> SchemaRegistryError:
    return SchemaRegistryError(
        42206,
        f"One or more references exist to the schema {{magic=1,keytype=SCHEMA,subject={subject},version={version}}}.",
    )


def invalid_subject(subject: str) -> SchemaRegistryError:
    return SchemaRegistryError(42208, f"The specified subject '{subject}' is not a valid.")


def invalid_rule_set(reason: str) -> SchemaRegistryError:
    return SchemaRegistryError(42210, reason)


def incompatible(subject: str, messages: list[str]) -> SchemaRegistryError:
    """409, also where the registry of Confluent answers 40901: clients ask for 409 (CSR-107)."""
    return SchemaRegistryError(
        409,
        "Schema being registered is incompatible with an earlier schema for subject "
        f'"{subject}", details: [{", ".join(messages)}]',
    )
