"""The version of the program: at `/-/version`, and in the header Server of every response."""

from __future__ import annotations

import platform
from typing import Final

from starlette.types import Receive

from annals import __version__
from annals.api.http.json_bodies import json_response
from annals.api.http.methods import read_only_options
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.domain.decisions.capabilities import OFFERED
from annals.domain.values.json_text import Json

VERSION: Final = "version"
#: The header of every response, which the HTTP server adds to those that it has in any case.
SERVER_HEADER: Final = ("Server", f"annals/{__version__}")


class VersionRoutes:
    """The surface of `/-/version`."""

    async def answer(self, request: Request, receive: Receive) -> Response:
        """The versions of the program and of what it runs on. Raises: MethodNotAllowed."""
        return read_only_options(request) or json_response(request, 200, version_info())


def version_info() -> dict[str, Json]:
    """The name and the version of the program, the versions of the specification, and that of Python."""
    return {
        "name": "annals",
        "version": __version__,
        "specversions": list(OFFERED["specversions"]),
        "python": platform.python_version(),
    }
