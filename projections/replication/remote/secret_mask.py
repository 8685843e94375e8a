"""Hides the secrets of a link in texts of the other registry, which may repeat what it was sent."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from annals.projections.outgoing.secret_encodings import secret_encodings

_MASK: Final = "***"
_SECRET_MEMBERS: Final = ("token", "password")
#: Shorter secrets would be found in ordinary words, which the masks would garble.
_MIN_SECRET_LENGTH: Final = 4


class SecretMask:
    """Masks the secrets of one link. credential: of the link, with its secret values."""

    def __init__(self, credential: Mapping[str, Any] | None) -> None:
        secrets = [secret for secret in _secrets(credential or {}) if len(secret) >= _MIN_SECRET_LENGTH]
        texts = sorted({text for secret in secrets for text in secret_encodings(secret)}, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, texts)), re.IGNORECASE) if texts else None

    def hide(self, text: str) -> str:
        """The text with a mask in place of each secret, also of one in another case, in a URL, in HTML or as Base64."""
        return text if self._pattern is None else self._pattern.sub(_MASK, text)


def _secrets(credential: Mapping[str, Any]) -> Iterator[str]:
    yield from filter(None, map(credential.get, _SECRET_MEMBERS))
    if password := credential.get("password"):
        yield f"{credential.get('username', '')}:{password}"
