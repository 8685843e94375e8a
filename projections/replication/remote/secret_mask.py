"""Hides the secrets of a link in texts of the other registry, which may repeat what it was sent."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

_MASK: Final = "***"
_SECRET_MEMBERS: Final = ("token", "password")


class SecretMask:
    """Masks the secrets of one link. credential: of the link, with its secret values."""

    def __init__(self, credential: Mapping[str, Any] | None) -> None:
        texts = sorted(set(_secret_texts(credential or {})), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, texts)), re.IGNORECASE) if texts else None

    def hide(self, text: str) -> str:
        """The text with a mask in place of each secret, also of one in another case, percent-encoded, or as Base64."""
        return text if self._pattern is None else self._pattern.sub(_MASK, text)


def _secret_texts(credential: Mapping[str, Any]) -> Iterator[str]:
    for value in filter(None, map(credential.get, _SECRET_MEMBERS)):
        yield from (value, quote(value, safe=""))
    if credential.get("password"):
        encoded = b64encode(f"{credential.get('username', '')}:{credential['password']}".encode()).decode()
        yield from (encoded, encoded.rstrip("="))
