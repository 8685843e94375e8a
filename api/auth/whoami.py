"""`/-/whoami`: who the server takes the sender of a request for (ACC-16)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from starlette.types import Receive

from annals.api.auth.callers import Authenticator
from annals.api.auth.identity import Identity
from annals.api.http.access_log.access_log import CURRENT_CALLER
from annals.api.http.json_bodies import json_response
from annals.api.http.methods import read_only_options
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.commands.store.clock import format_time
from annals.domain.values.json_text import Json

WHOAMI: Final = "whoami"
_NO_STORE: Final = (b"cache-control", b"no-store")


class WhoamiRoutes:
    """The surface of this path. It also answers callers without a credential."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    async def answer(self, request: Request, receive: Receive) -> Response:
        """The caller of the request. Raises: Unauthorized for a bad credential, TooManyRequests, MethodNotAllowed."""
        identity = await self._authenticator.identify(request)
        CURRENT_CALLER.set(identity.caller)
        self._authenticator.count(request, identity.caller)
        return read_only_options(request) or json_response(request, 200, identity_document(identity), [_NO_STORE])


def identity_document(identity: Identity) -> dict[str, Json]:
    """A caller as JSON."""
    caller, expires = identity.caller, identity.expires
    return {
        "name": caller.name,
        "authenticator": identity.authenticator,
        "role": caller.role,
        "groups": dict(caller.groups),
        "expires": None if expires is None else format_time(datetime.fromtimestamp(int(expires), UTC)),
    }
