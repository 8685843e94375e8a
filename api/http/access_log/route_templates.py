"""The route of a request as a template, and its path without secrets, for log lines."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final
from urllib.parse import quote

from annals.api.http.request import DETAILS_SUFFIX, Request

UNKNOWN_ROUTE: Final = "unknown"
#: The paths that depend on the model.
_RESOURCE: Final = "/{grouptype}/{groupid}/{resourcetype}/{resourceid}"
_ENTITY_TEMPLATES: Final = (
    *("/", "/{grouptype}", "/{grouptype}/{groupid}", "/{grouptype}/{groupid}/{resourcetype}", _RESOURCE),
    *(f"{_RESOURCE}/meta", f"{_RESOURCE}/versions", f"{_RESOURCE}/versions/{{versionid}}"),
)
#: The parameter that stands for all remaining segments, and the one whose value must not be logged.
_REST: Final = "{path}"
_SECRET: Final = "{secret}"
_MASK: Final = "***"
#: Number of segments that are logged of a path without a known route.
_SEGMENTS_OF_UNKNOWN: Final = 2
#: Characters that are logged as they are. The rest, such as control characters and white space, is percent-encoded.
_SAFE_CHARACTERS: Final = "@:!$&()*+,;=~"
_MAX_CHARACTERS: Final = 500

Parts = tuple[str, ...]


class RouteTemplates:
    """The templates of all routes. fixed: those of paths that do not depend on the model, as OpenAPI writes them."""

    def __init__(self, fixed: Iterable[str]) -> None:
        self._entity_parts = [*map(_split, _ENTITY_TEMPLATES)]
        self._parts_by_first_segment: dict[str, list[Parts]] = defaultdict(list)
        for parts in map(_split, fixed):
            self._parts_by_first_segment[parts[0]].append(parts)

    def describe(self, request: Request) -> tuple[str, str]:
        """The route of a request, and its path without query and secrets.

        A path without a known route is cut, because it may be a misspelled path with a secret.
        """
        segments, suffix = request.segments, DETAILS_SUFFIX if request.details else ""
        parts = self._find(segments)
        if parts is None:
            rest = ("...",) if len(segments) > _SEGMENTS_OF_UNKNOWN else ()
            return UNKNOWN_ROUTE, _join((*segments[:_SEGMENTS_OF_UNKNOWN], *rest))
        masked = [_MASK if part == _SECRET else segment for part, segment in zip(parts, segments, strict=False)]
        return "/" + "/".join(parts) + suffix, _join((*masked, *segments[len(masked) :])) + suffix

    def _find(self, segments: Parts) -> Parts | None:
        """The template of a path; None if there is none."""
        candidates = self._parts_by_first_segment.get(segments[0]) if segments else None
        return next((parts for parts in candidates or self._entity_parts if _matches(parts, segments)), None)


def _split(template: str) -> Parts:
    return tuple(template.split("/")[1:]) if template != "/" else ()


def _matches(parts: Parts, segments: Parts) -> bool:
    if parts[-1:] == (_REST,):
        parts = parts[:-1]
        segments = segments[: len(parts)]
    return len(parts) == len(segments) and all(
        part == segment or part.startswith("{") for part, segment in zip(parts, segments, strict=True)
    )


def _join(segments: Sequence[str]) -> str:
    return "/" + "/".join(quote(segment, safe=_SAFE_CHARACTERS) for segment in segments)[:_MAX_CHARACTERS]
