"""Attributes of a legacy document, and the parameters and headers that carry them (§ 5.1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from annals.domain.compat.legacy_apis import MESSAGECATALOG, LegacyApi


@dataclass(frozen=True, slots=True)
class DocumentAttributes:
    """The attributes that a POST gives for its document; None where it gives none.

    description: of the Version. about: the description of the schema or message definition.
    """

    description: str | None = None
    about: str | None = None
    format: str | None = None
    authority: str | None = None
    id: str | None = None


def request_names(family: LegacyApi) -> Mapping[str, tuple[str, str]]:
    """The query parameter and the header for each member of `DocumentAttributes`."""
    description_name = "messagedescription" if family is MESSAGECATALOG else "schemadescription"
    prefix = family.headers
    return {
        "description": ("description", f"{prefix}-Version-Description"),
        "about": (description_name, f"{prefix}-Description"),
        "format": ("format", f"{prefix}-Format"),
        "authority": ("authority", f"{prefix}-Authority"),
        "id": ("id", f"{prefix}-Id"),
    }
