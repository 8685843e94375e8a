"""Renders pages. Each has the headers of ACC-101, and no script or style of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from annals.api.http.browsers.page_headers import page_headers
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.api.ui.frame.frame import Frame, bare_frame, build_frame
from annals.api.ui.html_size import MAX_PAGE
from annals.api.ui.page_context import PageContext
from annals.api.ui.page_route import RouteTable
from annals.api.ui.redirect import NO_STORE
from annals.api.ui.sign_in.local_paths import HOME, below_root
from annals.api.ui.static_files import static_path
from annals.api.ui.text_values import FILTERS
from annals.domain.errors.problems import TooLarge

if TYPE_CHECKING:
    from jinja2 import Environment

_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action {form_action}; base-uri 'none'; frame-ancestors 'none'"
)


class Pages:
    """The pages of one server.

    table: of all pages. can_sign_in: whether the server has sessions. form_origins: returns the origins of a provider,
    to which a form can lead.
    """

    def __init__(
        self, table: RouteTable, *, can_sign_in: bool, form_origins: Callable[[], Iterable[str]] = tuple
    ) -> None:
        self._table = table
        self._can_sign_in = can_sign_in
        self._form_origins = form_origins

    async def render_page(
        self, page: PageContext, template: str, title: str, status: int, values: Mapping[str, Any]
    ) -> Response:
        """A page in its frame. values: what the template shows.

        Raises: TooLarge for one beyond 1 MB. A page that answers a form may be larger, because it repeats the input.
        """
        frame = await build_frame(page, can_sign_in=self._can_sign_in, follows_changes=status == 200)
        response = self._render(page.request, template, status, {"page": page, **values}, frame, title, page.link)
        if page.request.method != "POST" and isinstance(response.body, bytes) and len(response.body) > MAX_PAGE:
            raise TooLarge()
        return response

    def render_bare(self, request: Request, template: str, title: str, status: int = 200, **values: Any) -> Response:
        """A page that needs no caller."""

        def link(path: str) -> str:
            return below_root(request, HOME + path)

        frame = bare_frame(request, self._table, can_sign_in=self._can_sign_in)
        return self._render(request, template, status, values, frame, title, link)

    def _render(
        self,
        request: Request,
        template: str,
        status: int,
        values: Mapping[str, Any],
        frame: Frame,
        title: str,
        link: Callable[..., str],
    ) -> Response:
        """The page, which no cache keeps."""
        shared = {"root": below_root(request, ""), "static_path": static_path, "frame": frame, "link": link}
        text = _environment().get_template(template).render(title=title, **shared, **values)
        policy = _POLICY.format(form_action=" ".join(("'self'", *self._form_origins())))
        return Response(status, [*page_headers(policy), NO_STORE], text.encode())


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # only pages need it

    environment = Environment(
        loader=PackageLoader("annals.api.ui"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= FILTERS
    return environment
