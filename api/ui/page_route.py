"""The type of a row of the table of pages, and how a path finds its row."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from annals.api.http.request import DETAILS_SUFFIX
from annals.api.http.response import Response

#: Makes a page from its PageContext, whose file needs this one.
PageFunction = Callable[[Any], Awaitable[Response]]

_READ: Final = ("GET", "HEAD")
#: The methods of a page with a form that changes something.
WITH_FORM: Final = (*_READ, "POST")
_PATH_SUFFIX: Final = ":path"


@dataclass(frozen=True, slots=True)
class PageRoute:
    """One page, or one for each entity.

    template: the path below `/ui/`, which begins with a name; `{name}` stands for a segment that is an id,
    `{name:path}` at the end for one or more segments. answer: makes the page. navigation: the link of the navigation
    that the page is at or below. methods: that it takes. takes_asof: whether it shows the past; a page that does not
    says that it shows the present. writes_with_asof: whether its form is about a past moment. keeps_form: whether it
    shows a form again that a sign-in has kept, see `Form.kept`. secret_fields: of that form, whose values are not kept.
    needs_admin: whether other callers get 403. follows_changes: whether it says that there are newer changes.
    """

    template: str
    answer: PageFunction
    navigation: str = ""
    methods: tuple[str, ...] = _READ
    takes_asof: bool = True
    writes_with_asof: bool = False
    needs_admin: bool = False
    keeps_form: bool = False
    secret_fields: tuple[str, ...] = ()
    follows_changes: bool = False

    @property
    def segments(self) -> tuple[str, ...]:
        """The segments of the template."""
        return tuple(filter(None, self.template.split("/")))

    def match(self, segments: Sequence[str]) -> Mapping[str, str] | None:
        """What stands for the names in the template; None if the path is not the page's."""
        names = self.segments
        found: dict[str, str] = {}
        for index, name in enumerate(names):
            if index >= len(segments):
                return None
            if not name.startswith("{"):
                if name != segments[index]:
                    return None
            elif name.endswith(_PATH_SUFFIX + "}"):
                return {**found, name[1 : -len(_PATH_SUFFIX) - 1]: "/".join(segments[index:])}
            elif not _is_id(segments[index]):
                return None
            else:
                found[name[1:-1]] = segments[index]
        return found if len(segments) == len(names) else None


def _is_id(segment: str) -> bool:
    """Whether a page can put a decoded segment into a path of the API, and still reach what it means."""
    return bool(segment) and "/" not in segment and not segment.endswith(DETAILS_SUFFIX)


class RouteTable:
    """All pages; of two that match a path, the first one counts: names come before what stands for any segment."""

    def __init__(self, routes: Iterable[PageRoute]) -> None:
        self.routes = tuple(sorted(routes, key=lambda route: [name.startswith("{") for name in route.segments]))
        # A page looks up each of its links, so each look-up tries only the few pages that begin with the same name.
        self._by_first_name: dict[str, list[PageRoute]] = {}
        for route in self.routes:
            self._by_first_name.setdefault(route.segments[0] if route.segments else "", []).append(route)

    def find(self, segments: Sequence[str]) -> tuple[PageRoute, Mapping[str, str]] | None:
        """The page of a path below `/ui/`, and what stands for the names in its template."""
        for route in self._by_first_name.get(segments[0] if segments else "", ()):
            if (found := route.match(segments)) is not None:
                return route, found
        return None

    def find_path(self, path: str) -> PageRoute | None:
        """The page of a path without a query; below `/ui/`."""
        found = self.find(tuple(filter(None, path.split("/"))))
        return found[0] if found else None
