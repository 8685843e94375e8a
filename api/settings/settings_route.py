"""`/-/settings`: the settings in force, for administrators of the registry (UI-122)."""

from __future__ import annotations

from typing import Final

from starlette.types import Receive

from annals.api.http.json_bodies import json_response
from annals.api.http.methods import read_only_options
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.api.settings.settings import Settings
from annals.api.settings.shown_settings import ShownSetting, shown_settings
from annals.domain.errors.http_errors import Forbidden
from annals.domain.values.json_text import Json

SETTINGS: Final = "settings"
_NO_STORE: Final = (b"cache-control", b"no-store")


class SettingsRoutes:
    """The surface of `/-/settings`. Sources are those of the start, because a process reads its settings once."""

    def __init__(self, settings: Settings) -> None:
        self._documents: list[Json] = [_document(each) for each in shown_settings(settings, settings.flags)]

    async def answer(self, request: Request, receive: Receive) -> Response:
        """See `dispatch.Surface`. Raises: Forbidden, MethodNotAllowed."""
        if (options := read_only_options(request)) is not None:
            return options
        if not request.caller.is_admin:
            raise Forbidden(caller=request.caller.name)
        return json_response(request, 200, self._documents, [_NO_STORE])


def _document(setting: ShownSetting) -> Json:
    return {
        "name": setting.info.name,
        "value": setting.value or None,
        "source": setting.source_kind,
        "type": setting.info.type,
        "default": setting.info.default or None,
        "description": setting.info.description,
    }
