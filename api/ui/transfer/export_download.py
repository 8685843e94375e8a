"""An export as a file: the whole registry, or an entity or collection with everything below it (UI-62, UI-123)."""

from __future__ import annotations

from typing import Final

from annals.api.http.response import JSON, Response
from annals.api.ui.explore.entity_view import find_place
from annals.api.ui.local_times import moment_of_field
from annals.api.ui.page_context import PageContext, url_path

_EVERYTHING: Final = {"doc": "", "inline": "*"}


async def export_download(page: PageContext) -> Response:
    """The document, which browsers store as a file. Raises: NotFound, BadRequest for a moment that does not exist."""
    path, moment = page.param("path").strip().strip("/"), moment_of_field(page.param("moment")) or None
    api_path, query = "/export", {"asof": moment}
    if path:
        _, place = await find_place(page, path)
        api_path, query = place.xid if place.is_collection else place.api_path, {**_EVERYTHING, "asof": moment}
    page.asked = page.request.with_path(url_path(api_path))
    answer = await page.own_api.open(page.request, "GET", url_path(api_path), query)
    name = "".join(character if character.isascii() and character.isalnum() else "-" for character in path) or "export"
    file = (b"content-disposition", f'attachment; filename="{name}.json"'.encode())
    headers = [JSON, file, (b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
    return Response(answer.status, headers, answer.body, first_chunks=answer.first_chunks)
