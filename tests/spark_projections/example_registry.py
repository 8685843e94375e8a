"""Four months of a small registry with three users: the log that docs/guides/spark/analysts.md queries."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from annals.api.app import create_app
from annals.api.settings.settings import Settings
from tests.support.registries.requests import OpenRegistry, Request, RequestClock

CALLERS: Final = ("ada", "ben", "ci")
_REPORT: Final = "/schemagroups/weather/schemas/report"
_JAM: Final = "/schemagroups/traffic/schemas/jam"
_DRAFT: Final = "JsonSchema/draft-07"


class ExampleRequest(NamedTuple):
    """A request and the status of its response. day: month and day of 2026; the request is sent at noon."""

    day: str
    caller: str
    method: str
    path: str
    body: Any
    status: int


def _city(**further: str) -> dict[str, Any]:
    types = {"city": "string"} | further
    return {"type": "object", "properties": {name: {"type": type} for name, type in types.items()}}


def _schema(document: dict[str, Any], format: str = _DRAFT, **attributes: Any) -> dict[str, Any]:
    return {"format": format, "schema": document, **attributes}


REQUESTS: Final = (
    ExampleRequest("01-05", "ada", "PUT", "/schemagroups/weather", {"name": "Weather"}, 201),
    ExampleRequest("01-05", "ada", "PUT", f"{_REPORT}$details", _schema(_city()), 201),
    ExampleRequest("01-20", "ci", "POST", f"{_REPORT}$details", _schema(_city(celsius="number")), 201),
    ExampleRequest("02-03", "ben", "PUT", f"{_JAM}$details", _schema(_city(), "Homemade/1"), 201),
    ExampleRequest("02-10", "ada", "PATCH", f"{_REPORT}/meta", {"compatibility": "backward"}, 200),
    ExampleRequest("02-11", "ci", "POST", f"{_REPORT}$details", _schema(_city(celsius="string")), 400),
    ExampleRequest("02-12", "ci", "POST", f"{_REPORT}$details", _schema(_city(celsius="number", wind="number")), 201),
    ExampleRequest("02-20", "ben", "POST", f"{_JAM}$details", _schema({"jam": True}, "Homemade/1"), 201),
    ExampleRequest("03-01", "ben", "PATCH", f"{_JAM}/meta", {"compatibility": "backward"}, 200),
    ExampleRequest(
        "03-02",
        "ada",
        "PATCH",
        f"{_REPORT}/meta",
        {"deprecated": {"effective": "2026-03-10T00:00:00Z", "removal": "2026-04-01T00:00:00Z"}},
        200,
    ),
    ExampleRequest("03-15", "ben", "PATCH", "/schemagroups/traffic", {"deprecated": {}}, 200),
    ExampleRequest("03-16", "ben", "PATCH", "/schemagroups/traffic", {"labels": {"stage": "test"}}, 200),
    ExampleRequest(
        "03-20", "ben", "PATCH", "/schemagroups/traffic", {"deprecated": None, "labels": {"stage": "live"}}, 200
    ),
    ExampleRequest("04-02", "ada", "DELETE", _REPORT, None, 204),
    ExampleRequest("04-10", "ci", "DELETE", f"{_JAM}/versions/1", None, 204),
    ExampleRequest("04-12", "ben", "PUT", "/endpoints/weather", {"usage": ["producer"]}, 201),
    ExampleRequest("04-14", "ada", "PUT", f"{_REPORT}$details", _schema(_city()), 201),
)


class RequestCalendar(RequestClock):
    """A clock that shows the day of the current request."""

    day = datetime(2026, 1, 1, 12, tzinfo=UTC)

    def clock(self) -> datetime:
        return self.day


async def send_requests(database: str) -> None:
    """Sends the requests to the API of a new registry."""
    moment = RequestCalendar()
    tokens = json.dumps({name: {"name": name, "role": "writer"} for name in CALLERS})
    settings = Settings(database=database, registryid="reg", tokens=tokens)
    app = create_app(settings, clock=moment.clock, new_id=moment.new_id)
    async with app.router.lifespan_context(app):
        registry = OpenRegistry(app, moment)
        for request in REQUESTS:
            moment.day = datetime.fromisoformat(f"2026-{request.day}T12:00:00+00:00")
            headers = {"authorization": f"Bearer {request.caller}"}
            answer = await registry.ask(Request(request.method, request.path, request.body, headers))
            assert answer.status == request.status, (request, answer)
