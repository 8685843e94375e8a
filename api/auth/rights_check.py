"""Whether the reader of a stream still has the rights with which it began (ACC-47, ACC-83)."""

from __future__ import annotations

import time
from typing import Final

from annals.api.auth.callers import Authenticator
from annals.api.http.request import Request
from annals.domain.errors.http_errors import Unauthorized
from annals.domain.errors.problems import Problem

#: Seconds for which rights are taken to hold.
RIGHTS_SECONDS: Final = 5.0


class RightsCheck:
    """The rights of one request, asked for again from time to time."""

    def __init__(self, authenticator: Authenticator, request: Request) -> None:
        self._authenticator = authenticator
        self._request = request
        self._checked_at = time.monotonic()

    async def still_hold(self) -> bool:
        """Whether the credential is good and gives the same caller the same roles, as of a few seconds ago."""
        if time.monotonic() - self._checked_at < RIGHTS_SECONDS:
            return True
        self._checked_at = time.monotonic()
        try:
            return (await self._authenticator.identify(self._request)).caller == self._request.caller
        except Problem:
            return False

    async def require(self) -> None:
        """Raises: Unauthorized if they no longer hold."""
        if not await self.still_hold():
            raise Unauthorized(error_detail="the rights of the one that was sent have changed")
