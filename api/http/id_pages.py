"""Pages of the lists of entities outside the registry's tree, such as `/-/keys`: in the order of their ids (PAG-7)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple, Protocol, TypeVar

from annals.api.http.next_link import AFTER, next_link
from annals.api.http.query_params import QueryParams, invalid_param, parse_number, single_value
from annals.api.http.request import Request
from annals.api.http.response import Headers
from annals.domain.replication.link_document import ID

#: The number of members of a page, if the client asks for no other number, and the largest.
MAX_LIMIT: Final = 1000
_LIMIT: Final = "limit"
PAGE_PARAMS: Final = (_LIMIT, AFTER)


class HasId(Protocol):
    """A member of such a list."""

    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=HasId)


class IdPage(NamedTuple):
    """A page that a client asks for. after: the id behind which it begins; empty for the first page."""

    limit: int
    after: str

    def take(self, request: Request, following: Iterator[T]) -> tuple[list[T], Headers]:
        """The members of the page, and the link to the next one if there is one. following: all members behind `after`.

        It reads one member beyond the page.
        """
        found = list(islice(following, self.limit + 1))
        shown = found[: self.limit]
        return shown, [next_link(request, shown[-1].id)] if len(found) > self.limit else []


def parse_id_page(parameters: QueryParams) -> IdPage:
    """The page that the parameters ask for. Raises: BadRequest."""
    limit, after = (single_value(parameters, name) for name in PAGE_PARAMS)
    size = parse_number(_LIMIT, limit, 1, MAX_LIMIT) or MAX_LIMIT
    if after is not None and not ID.match(after):
        raise invalid_param(AFTER, f"{after!r} is not the id of a member")
    return IdPage(size, after or "")
