"""How a document of a media type is inlined in JSON.

Spec: Registry Model 1.0-rc4, "groups.<STRING>.resources.<STRING>.typemap".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from annals.domain.model.model_errors import ModelPath, check_kind, model_error

DOCUMENT_FORMS: Final = ("binary", "json", "string")
_IMPLICIT_FORMS: Final = {"application/json": "json", "*+json": "json", "text/plain": "string"}


def check_typemap(entries: Mapping[str, str], model_path: ModelPath) -> dict[str, str]:
    """A typemap with its values in lower case. Raises: ModelError."""
    for key, representation in entries.items():
        check_kind(representation, "nonempty", (*model_path, key))
        if not key or key.count("*") > 1:
            raise model_error((*model_path, key), "a key has to be a media type with at most one *")
        if representation.lower() not in DOCUMENT_FORMS:
            raise model_error((*model_path, key), f"{representation!r} is not one of: {', '.join(DOCUMENT_FORMS)}")
    return {key: representation.lower() for key, representation in entries.items()}


def document_form(typemap: Mapping[str, str], contenttype: str | None) -> str:
    """`json`, `string` or `binary`; case and parameters of the media type are ignored."""
    media_type = (contenttype or "").partition(";")[0].strip().lower()
    for rules in (typemap, _IMPLICIT_FORMS):
        matching_forms = {value for pattern, value in rules.items() if _is_match(pattern, media_type)}
        if matching_forms:
            return matching_forms.pop() if len(matching_forms) == 1 else "binary"
    return "binary"


def _is_match(pattern: str, media_type: str) -> bool:
    prefix, wildcard, suffix = pattern.lower().partition("*")
    if not wildcard:
        return prefix == media_type
    is_long_enough = len(media_type) >= len(prefix) + len(suffix)
    return is_long_enough and media_type.startswith(prefix) and media_type.endswith(suffix)
