"""Commands as the legacy APIs submit them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from annals.domain.compat.legacy_apis import MESSAGECATALOG, SCHEMAREGISTRY, LegacyApi
from annals.domain.compat.request_extras import LegacyDeletion, LegacyWrite
from annals.domain.decisions.commands import DeleteEntities, WriteMethod, WriteTree
from annals.domain.model.builtin import default_source

URL = "https://registry.example"
#: A schema format for which Annals has no checks.
FORMAT = "Text/1"
G, S = "/schemagroups/g", "/schemagroups/g/schemas/s"
C, M = "/messagegroups/c", "/messagegroups/c/messages/m"


def family_at(xid: str) -> LegacyApi:
    return SCHEMAREGISTRY if xid.startswith("/schemagroups") else MESSAGECATALOG


def put_group(xid: str, format: str | None = None, **attributes: Any) -> WriteTree:
    """The command of a PUT of a Group."""
    family = family_at(xid)
    if family == MESSAGECATALOG and format == "CloudEvents":
        attributes["envelope"] = "CloudEvents/1.0"
    return WriteTree(xid, attributes, WriteMethod.PUT, facade=LegacyWrite(family, URL + family.base, format=format))


def post(
    xid: str, content: bytes, contenttype: str | None = None, *, description: str | None = None, **said: Any
) -> WriteTree:
    """The command of a POST of a document. said: members of `LegacyWrite`.

    The document of a message definition is its CloudEvents type.
    """
    family = family_at(xid)
    tree: dict[str, Any] = {"description": description} if description is not None else {}
    facade = {"family": family, "base": URL + family.base, **said}
    if family == SCHEMAREGISTRY:
        tree["contenttype"] = contenttype
        return WriteTree(xid, tree, WriteMethod.POST, document=content, facade=LegacyWrite(**facade))
    tree |= {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": content.decode().partition(" ")[0]}}}
    return WriteTree(
        xid, tree, WriteMethod.POST, facade=LegacyWrite(content=content, contenttype=contenttype, **facade)
    )


def delete(xid: str, number: int | None = None) -> DeleteEntities:
    """The command of a DELETE of the entity at an xid. number: deletes the Version of the Resource with that number."""
    path = xid if number is None else f"{xid}/versions"
    return DeleteEntities(path, facade=LegacyDeletion(family_at(xid), number))


def source(maxversions: int = 0) -> dict[str, Any]:
    """The default model, with a limit for the number of Versions of schemas and messages."""
    found = deepcopy(default_source())
    for group, resource in (("schemagroups", "schemas"), ("messagegroups", "messages")):
        found["groups"][group]["resources"][resource]["maxversions"] = maxversions
    return found
