"""Published data that tests compare with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

SPEC = Path(__file__).parent / "xregistry-spec"


def published(name: str) -> Any:
    """A JSON file of the specification's repository, by its path there."""
    return json.loads((SPEC / name).read_text("utf-8"))
