"""Texts that only the server can have written, such as the values of its cookies."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode


def signed(key: bytes, purpose: str, text: str) -> str:
    """A text with its signature. purpose: the signature is good for no other one."""
    return f"{text}.{derived(key, purpose, text)}"


def verified(key: bytes, purpose: str, value: str) -> str | None:
    """The text in a signed value; None if the server has not signed it for this purpose."""
    text, _, signature = value.rpartition(".")
    is_good = hmac.compare_digest(signature.encode(), derived(key, purpose, text).encode())
    return text if is_good else None


def derived(key: bytes, purpose: str, text: str) -> str:
    """43 characters that nobody without the key can tell from the text."""
    digest = hmac.digest(key, f"{purpose}\0{text}".encode(), "sha256")
    return urlsafe_b64encode(digest).rstrip(b"=").decode()
