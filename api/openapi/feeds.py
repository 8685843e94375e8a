"""The paths of ours in `api/routes` that belong to feeds."""

from __future__ import annotations

from typing import Any, Final

PATHS: Final[dict[str, dict[str, Any]]] = {}
