"""The route of a request as a template, and its path without secrets, for log lines and metrics."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple
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


class _Template(NamedTuple):
    route: str
    parts: Parts


@dataclass(slots=True)
class _Node:
    """The first segments of some templates, as a node of a tree. Cost of a look-up: 0.2 microseconds per segment.

    named: what may follow, by segment. variable: what follows a parameter. end: the template that has no more segments.
    rest: the template whose last parameter stands for all segments that remain.
    """

    named: dict[str, _Node] = field(default_factory=dict)
    variable: _Node | None = None
    end: _Template | None = None
    rest: _Template | None = None

    def add(self, template: _Template) -> None:
        """Adds a template, of which this node is the root."""
        node = self
        for part in template.parts:
            if part == _REST:
                node.rest = template
                return
            if part.startswith("{"):
                node.variable = node.variable or _Node()
                node = node.variable
            else:
                node = node.named.setdefault(part, _Node())
        node.end = template

    def find(self, segments: Parts, start: int = 0) -> _Template | None:
        """The template of the segments from a position on; names come before parameters."""
        if start == len(segments):
            return self.end or self.rest
        named, found = self.named.get(segments[start]), None
        if named is not None:
            found = named.find(segments, start + 1)
        if found is None and self.variable is not None:
            found = self.variable.find(segments, start + 1)
        return found or self.rest


class RouteTemplates:
    """The templates of all routes. fixed: those of paths that do not depend on the model, as OpenAPI writes them."""

    def __init__(self, fixed: Iterable[str]) -> None:
        self._entities, self._fixed = _Node(), _Node()
        for root, templates in ((self._entities, _ENTITY_TEMPLATES), (self._fixed, fixed)):
            for template in templates:
                root.add(_Template(template, _split(template)))

    def route(self, request: Request) -> str | None:
        """The template of a request's path, without `$details`; None if no route is known."""
        template = self._find(request.segments)
        return template.route if template is not None else None

    def describe(self, request: Request) -> tuple[str, str]:
        """The route of a request, and its path without query and secrets.

        A path without a known route is cut, because it may be a misspelled path with a secret.
        """
        segments, suffix = request.segments, DETAILS_SUFFIX if request.details else ""
        template = self._find(segments)
        if template is None:
            rest = ("...",) if len(segments) > _SEGMENTS_OF_UNKNOWN else ()
            return UNKNOWN_ROUTE, _join((*segments[:_SEGMENTS_OF_UNKNOWN], *rest))
        masked = [
            _MASK if part == _SECRET else segment for part, segment in zip(template.parts, segments, strict=False)
        ]
        return template.route + suffix, _join((*masked, *segments[len(masked) :])) + suffix

    def _find(self, segments: Parts) -> _Template | None:
        # A name that begins other paths begins no path of an entity: that route could show a secret.
        is_fixed = bool(segments) and segments[0] in self._fixed.named
        return (self._fixed if is_fixed else self._entities).find(segments)


def _split(template: str) -> Parts:
    return tuple(template.split("/")[1:]) if template != "/" else ()


def _join(segments: Sequence[str]) -> str:
    return "/" + "/".join(quote(segment, safe=_SAFE_CHARACTERS) for segment in segments)[:_MAX_CHARACTERS]
