"""The forms in which the program at the other end may repeat a secret that it was sent."""

from __future__ import annotations

import html
import json
from base64 import b64encode
from collections.abc import Iterator
from urllib.parse import quote, quote_plus


def secret_encodings(secret: str) -> Iterator[str]:
    """A secret as it is, and as it appears in URLs, HTML, JSON and Base64."""
    yield secret
    yield quote(secret, safe="")
    yield quote_plus(secret)
    yield html.escape(secret)
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield (encoded := b64encode(secret.encode()).decode())
    yield encoded.rstrip("=")
