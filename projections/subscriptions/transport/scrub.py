"""A sink's answer as text for the owner of a subscription: short, on one line, without secrets.

Rules SUB-303 and SUB-823.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from annals.projections.outgoing.secret_encodings import secret_encodings
from annals.projections.subscriptions.contract import Credential, Outcome

#: Largest size of the text in bytes.
MAX_TEXT_BYTES: Final = 1024
MASK: Final = "***"


def scrub_secrets(body: bytes, secrets: Iterable[str], is_complete: bool = True) -> str:
    """At most 1 KiB of an answer's text. is_complete: whether the body was read to its end."""
    encodings = sorted(
        {encoding for secret in secrets if secret for encoding in secret_encodings(secret)}, key=len, reverse=True
    )
    text = _mask_secrets(body.decode("utf-8", "replace"), encodings)
    if not is_complete and encodings:
        # The body may end with the beginning of a secret.
        text = text[: -len(encodings[0])]
    # A secret that contains blanks may appear only after joining the lines.
    line = _mask_secrets(
        " ".join("".join(character if character.isprintable() else " " for character in text).split()), encodings
    )
    return line.encode()[:MAX_TEXT_BYTES].decode(errors="ignore")


def scrub_outcome(outcome: Outcome, credential: Credential | None) -> Outcome:
    """The outcome of an attempt without the secrets of its credential, in case the sink repeated them."""
    secrets = (credential.secret, credential.token) if credential else ()
    code, message = (scrub_secrets(text.encode(errors="replace"), secrets) for text in (outcome.code, outcome.message))
    return replace(outcome, code=code, message=message)


def _mask_secrets(text: str, encodings: Iterable[str]) -> str:
    for encoding in encodings:
        # In any case, because client libraries change the case of some errors.
        text = re.sub(re.escape(encoding), MASK, text, flags=re.IGNORECASE)
    return text
