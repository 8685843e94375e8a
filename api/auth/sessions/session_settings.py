"""How long sessions last."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """idle: seconds without a request after which a session ends. longest: seconds after which it ends in any case."""

    idle: int = 28_800
    longest: int = 86_400
