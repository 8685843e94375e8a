"""Replication links from a setting; the server creates them at its start."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from annals.api.auth import json_settings
from annals.domain.errors.http_errors import InvalidLink
from annals.domain.replication.link_document import ID, parse_link
from annals.domain.values.json_text import InvalidJson, loads


def parse_configured_links(setting: str) -> Mapping[str, Mapping[str, Any]]:
    """Link documents by id. setting: JSON text of such an object, or the path of a file. Raises: ValueError."""
    try:
        link_documents = loads(json_settings.load_json_text(setting).encode())
    except InvalidJson as error:
        raise ValueError(str(error)) from None
    if not isinstance(link_documents, dict) or not all(map(ID.match, link_documents)):
        raise ValueError("an object with links by id is needed; an id has letters, digits, . _ ~ and -")
    for id, document in link_documents.items():
        try:
            parse_link(document)
        except InvalidLink as error:
            raise ValueError(f"{id}: {error.text()}") from None
    return link_documents
