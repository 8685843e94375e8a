"""Renders pages. Each has the headers of ACC-101, and no script or style of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from annals.api.http.browsers.page_headers import page_headers
from annals.api.http.request import Request
from annals.api.http.response import Headers, Response
from annals.api.ui.local_paths import below_root
from annals.api.ui.static_files import static_path

if TYPE_CHECKING:
    from jinja2 import Environment

_NO_STORE: Final = (b"cache-control", b"no-store")
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action {form_action}; base-uri 'none'; frame-ancestors 'none'"
)


class Pages:
    """The pages of one server. form_origins: returns those of a provider, to which a form can lead."""

    def __init__(self, form_origins: Callable[[], Iterable[str]] = tuple) -> None:
        self._form_origins = form_origins

    def render(self, request: Request, template: str, status: int = 200, **values: Any) -> Response:
        """A page, which no cache keeps. values: what the template shows."""
        root = below_root(request, "")
        text = _environment().get_template(template).render(root=root, static_path=static_path, **values)
        policy = _POLICY.format(form_action=" ".join(("'self'", *self._form_origins())))
        return Response(status, [*page_headers(policy), _NO_STORE], text.encode())


def redirect(location: str, headers: Iterable[tuple[bytes, bytes]] = (), status: int = 303) -> Response:
    """Sends a browser on. location: a path with the root's, or a URL."""
    all_headers: Headers = [(b"location", location.encode()), _NO_STORE, *headers]
    return Response(status, all_headers)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # only pages need it

    return Environment(loader=PackageLoader("annals.api.ui"), autoescape=True, undefined=StrictUndefined)
