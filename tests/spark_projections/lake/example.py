"""Three months of a shop's registry: the log that docs/guides/lake/questions.md queries."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from annals.api.app import create_app
from annals.api.settings.settings import Settings
from tests.spark_projections.example_registry import ExampleRequest, RequestCalendar
from tests.support.registries.requests import OpenRegistry, Request

_AVRO: Final = "Avro/1.11.0"
_DRAFT: Final = "JsonSchema/draft-07"
_PROTO: Final = "Protobuf/3"
CUSTOMER: Final = "/schemagroups/sales/schemas/customer"
ORDER: Final = "/schemagroups/sales/schemas/order"
PARCEL: Final = "/schemagroups/shipping/schemas/parcel"
EVENT: Final = "/schemagroups/web/schemas/click"


def _record(name: str, **fields: Any) -> dict[str, Any]:
    members = [
        {"name": field, **(type if isinstance(type, dict) else {"type": type})} for field, type in fields.items()
    ]
    return {"type": "record", "name": name, "fields": members}


def _optional(type: Any, **more: Any) -> dict[str, Any]:
    return {"type": ["null", type], "default": None, **more}


def _object(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": properties}


def _write(document: Any, format: str = _AVRO, **attributes: Any) -> dict[str, Any]:
    return {"format": format, "schema": document, **attributes}


_EMAIL: Final = {"type": "string", "doc": "Personal data: address for answers."}
_ADDRESS: Final = _record("Address", street="string", city="string", birthday=_optional("string"))
_PARCEL_1: Final = (
    'syntax = "proto3";\nmessage Parcel {\n  string id = 1;\n  // Personal data.\n  string phone = 2;\n}\n'
)
_PARCEL_2: Final = 'syntax = "proto3";\nmessage Parcel {\n  string id = 1;\n  double weight = 3;\n}\n'
_TEXT: Final = {"type": "string"}

#: day, caller, method, path, body, status
REQUESTS: Final = tuple(
    ExampleRequest(*row)
    for row in (
        ("01-05", "ada", "PUT", "/schemagroups/sales", {"name": "Sales", "labels": {"team": "orders"}}, 201),
        ("01-05", "ada", "PUT", f"{CUSTOMER}$details", _write(_record("Customer", id="string", email=_EMAIL)), 201),
        ("01-06", "ada", "PUT", f"{ORDER}$details", _write(_record("Order", id="string", total="double")), 201),
        ("01-09", "ben", "PUT", "/schemagroups/shipping", {"labels": {"team": "logistics"}}, 201),
        ("01-09", "ben", "PUT", f"{PARCEL}$details", _write(_PARCEL_1, _PROTO), 201),
        ("01-20", "ci", "PUT", "/schemagroups/web", {"labels": {"team": "site"}}, 201),
        (
            *("01-20", "ci", "PUT", f"{EVENT}$details"),
            *(_write(_object(["page"], page=_TEXT, email={**_TEXT, "format": "email"}), _DRAFT), 201),
        ),
        (
            *("01-27", "ada", "POST", f"{CUSTOMER}$details"),
            *(_write(_record("Customer", id="string", email=_EMAIL, home=_optional(_ADDRESS))), 201),
        ),
        ("02-02", "ben", "PATCH", f"{ORDER}$details", {"description": "What was bought."}, 200),
        ("02-03", "ada", "PATCH", f"{ORDER}$details", {"description": None}, 200),
        ("02-05", "ben", "POST", f"{PARCEL}$details", _write(_PARCEL_2, _PROTO), 201),
        (
            *("02-09", "ada", "POST", f"{ORDER}$details"),
            *(_write(_record("Order", id="string", total="double", customer="string")), 201),
        ),
        (
            *("02-10", "ada", "POST", f"{ORDER}$details"),
            *(_write(_record("Order", id="string", total="double", customer=_optional("string"))), 201),
        ),
        ("02-11", "ada", "PATCH", f"{CUSTOMER}/meta", {"compatibility": "backward"}, 200),
        (
            *("02-16", "ci", "POST", f"{EVENT}$details"),
            *(_write(_object(["page", "at"], page=_TEXT, at=_TEXT), _DRAFT), 201),
        ),
        ("02-20", "ben", "PATCH", "/schemagroups/shipping", {"labels": {"team": "orders"}}, 200),
        ("02-21", "ada", "PATCH", "/schemagroups/shipping", {"labels": {"team": "logistics"}}, 200),
        (
            *("03-02", "ben", "PATCH", f"{PARCEL}/meta"),
            *({"deprecated": {"effective": "2026-03-02T00:00:00Z", "removal": "2026-03-20T00:00:00Z"}}, 200),
        ),
        ("03-03", "ci", "PATCH", f"{EVENT}/meta", {"deprecated": {"removal": "2026-06-01T00:00:00Z"}}, 200),
        ("03-09", "ben", "PUT", "/endpoints/parcels", {"usage": ["consumer"], "protocol": "HTTP"}, 201),
        ("03-10", "ci", "DELETE", f"{EVENT}/versions/1", None, 204),
        ("03-23", "ben", "DELETE", PARCEL, None, 204),
    )
)

#: The subscriptions and links of the registry with their status, as its API returns them.
SUBSCRIPTIONS: Final = [
    {
        "id": "billing",
        "protocol": "HTTP",
        "status": {
            "state": "active",
            "position": 54,
            "lag": 2,
            "pending": 2,
            "deadletters": 0,
            "lastsuccess": "2026-03-24T08:59:00Z",
        },
    },
    {
        "id": "audit",
        "protocol": "KAFKA",
        "status": {
            "state": "active",
            "position": 26,
            "lag": 30,
            "pending": 0,
            "deadletters": 3,
            "lasterror": {"code": "timeout"},
        },
    },
]
LINKS: Final = [
    {
        "id": "berlin",
        "status": {
            "state": "active",
            "position": 56,
            "verdict": "equal",
            "head": {"position": 56},
            "lag": {"positions": 0, "seconds": 0},
        },
    },
    {
        "id": "tokyo",
        "status": {
            "state": "failing",
            "position": 44,
            "head": {"position": 56},
            "lag": {"positions": 12, "seconds": 90.5},
            "error": "no answer",
        },
    },
]


def write_example(path: Path) -> None:
    """Sends the requests to a new registry whose store is a SQLite file."""
    asyncio.run(_send_requests(f"sqlite:///{path}"))


async def _send_requests(database: str) -> None:
    moment = RequestCalendar()
    tokens = json.dumps({name: {"name": name, "role": "writer"} for name in ("ada", "ben", "ci")})
    settings = Settings(database=database, registryid="shop", tokens=tokens)
    app = create_app(settings, clock=moment.clock, new_id=moment.new_id)
    async with app.router.lifespan_context(app):
        registry = OpenRegistry(app, moment)
        for number, request in enumerate(REQUESTS):
            month, day = map(int, request.day.split("-"))
            moment.day = datetime(2026, month, day, 9 + number % 8, tzinfo=UTC)
            headers = {"authorization": f"Bearer {request.caller}"}
            answer = await registry.ask(Request(request.method, request.path, request.body, headers))
            assert answer.status == request.status, (request, answer)
