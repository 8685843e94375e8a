"""Ports and host names whose root is one of the other registries' APIs."""

from __future__ import annotations

from typing import Final

#: Paths of the registry that such a port or host name has as well: probes use names that no setting knows (ACC-87).
_HEALTH_PATHS: Final = ("/-/livez", "/-/readyz")


def path_below(base: str, raw_path: str) -> str:
    """The path in the registry for a path at a port or a host name whose root is the API at `base`."""
    # URLs in responses are canonical, so canonical paths have to work there too.
    if raw_path in _HEALTH_PATHS or raw_path == base or raw_path.startswith(f"{base}/"):
        return raw_path
    return base + raw_path
