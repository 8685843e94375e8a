"""URLs of the legacy APIs.

Stored URLs (version URIs) start with the configured root of the registry. Links in responses start with the root that
the request used (LEG-106).
"""

from __future__ import annotations

from urllib.parse import quote

from annals.api.http.asof import with_asof
from annals.domain.compat.ids import encode_segment
from annals.domain.compat.legacy_apis import LegacyApi
from annals.domain.compat.uris import default_version_path


def group_path(family: LegacyApi, group: str) -> str:
    """The path of a Group below the base of its API. group: the decoded id."""
    return f"/{family.path}/{encode_segment(group)}"


def version_url(root: str, family: LegacyApi, group: str, child: str, number: int, asof_suffix: str = "") -> str:
    """The absolute URL of a Version. asof_suffix: the suffix for URLs in responses about the past."""
    return with_asof(root + family.base + default_version_path(family, group, child, number), asof_suffix)


def lookup_url(root: str, family: LegacyApi, uri: str, asof_suffix: str = "") -> str:
    """The absolute URL that finds a Version by its URI."""
    return with_asof(f"{root}{family.base}/{family.lookup}?uri={quote(uri, safe='')}", asof_suffix)
