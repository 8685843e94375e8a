"""`/-/search` over HTTP: answers, formats, pages, refusals, rights."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import quote

import pytest

from annals.domain.model.builtin import default_source
from tests.support.registries.in_process import BASE, Api, create, serving
from tests.support.search_index import catch_up

ORDERS: Final = "/schemagroups/orders"
PLACED: Final = f"{ORDERS}/schemas/orderPlaced"
PROTO: Final = 'syntax = "proto3";\nmessage Reading {\n  // degrees of warmth\n  double temperatureValue = 1;\n}\n'
XSD: Final = (
    '<xs:schema xmlns:xs="http://www.w3.org/2001/XMLSchema"><xs:element name="parcel"><xs:complexType><xs:sequence>'
    '<xs:element name="weightInGrams" type="xs:int"/></xs:sequence></xs:complexType></xs:element></xs:schema>'
)
STREET: Final = {"type": "string", "description": "Straße"}


def _schema(format: str, document: Any, **attributes: Any) -> dict[str, Any]:
    return {"format": format, "schema": document, **attributes}


def _avro(*names: str) -> dict[str, Any]:
    return {"type": "record", "name": "R", "fields": [{"name": name, "type": "int"} for name in names]}


CONTENT: Final = {
    "orders": {
        "name": "Orders of customers",
        "labels": {"team": "Payments Ünit"},
        "schemas": {
            "orderPlaced": _schema(
                "JsonSchema/draft-07",
                {
                    "properties": {
                        "orderTotal": {"type": "number", "description": "Sum of all lines"},
                        "address": {"type": "object", "properties": {"street": STREET}},
                    }
                },
                name="Order placed",
                description="Sent when a customer has placed an order.",
            ),
            "order": _schema("Avro/1.11", _avro("order_id")),
            "parcel": _schema("XSD/1.1", XSD),
        },
    },
    "sensors": {
        "schemas": {
            "reading": _schema("Protobuf/3", PROTO),
            "openapi": _schema(
                "OpenAPI/3.1",
                {
                    "openapi": "3.1.0",
                    "info": {"title": "t", "version": "1"},
                    "paths": {},
                    "components": {"schemas": {"Device": {"properties": {"batteryLevel": {"type": "integer"}}}}},
                },
            ),
        }
    },
}
#: Queries with the xids that they find, in order.
FINDS: Final = [
    ("order", [f"{ORDERS}/schemas/order", ORDERS, PLACED]),
    ("ORDERPLACED", [PLACED]),
    ("orderp", [PLACED]),
    ("order_placed", [PLACED]),
    ("ordertotal", [PLACED]),
    ("order.total", [PLACED]),
    ("customernumber", [f"{ORDERS}/schemas/order"]),
    ("total order", [PLACED]),
    ("tot ord", []),
    ('"order total"', [PLACED]),
    ('"total order"', []),
    ('"placed an order"', [PLACED]),
    ("address.street", [PLACED]),
    ("strasse", [PLACED]),
    ("unit", [ORDERS]),
    ("customer in:name", [ORDERS]),
    ("order in:label", []),
    ("order in:name in:field", [ORDERS, PLACED]),
    ("order type:schemagroups", [ORDERS]),
    ("order format:jsonschema", [PLACED]),
    ("order format:avro/1.11", [f"{ORDERS}/schemas/order"]),
    ("temperaturevalue", ["/schemagroups/sensors/schemas/reading"]),
    ("warmth in:field", ["/schemagroups/sensors/schemas/reading"]),
    ("weight", [f"{ORDERS}/schemas/parcel"]),
    ("battery", ["/schemagroups/sensors/schemas/openapi"]),
    (
        "group:/schemagroups/sensors type:schemagroups.schemas",
        [
            "/schemagroups/sensors/schemas/openapi",
            "/schemagroups/sensors/schemas/reading",
        ],
    ),
    ("group:/schemagroups/sensors order", []),
    ("nowhere", []),
    ("type:\0", []),
    ("format:a\0", []),
]
REFUSED: Final = [
    ("", "q"),
    ("q=", "no word"),
    ("q=-", "no word"),
    ("q=in:name", "no word"),
    (f"q={'x' * 257}", "256"),
    ("q=" + "+".join("abcdefghijk"), "10"),
    ("q=color:red", 'prefix "color:"'),
    ("q=x+in:nowhere", "in:nowhere"),
    ("q=x+group:a/b/c/d", "group:a/b/c/d"),
    ("q=%22x", "quotation mark"),
    ("q=x&asof=1", "present"),
    ("q=x&limit=0", "1 to 100"),
    ("q=x&limit=101", "1 to 100"),
    ("q=x&limit=a", "1 to 100"),
    ("q=x&versions=some", "versions"),
    ("q=x&after=1", "after"),
    ("q=x&shape=csv", "shape"),
    ("q=x&q=y", "once"),
]


@pytest.fixture(scope="module")
def registry(shared_store_url: str) -> Iterator[Api]:
    create(shared_store_url, default_source())
    with serving(shared_store_url, tokens=json.dumps(TOKENS)) as api:
        for id, body in CONTENT.items():
            _done(api, f"/schemagroups/{id}", body)
        _done(api, f"{ORDERS}/schemas/order/versions/2$details", _schema("Avro/1.11", _avro("customer_number")))
        catch_up(shared_store_url)
        yield api


TOKENS: Final = {
    "root": {"name": "root", "role": "admin"},
    "part": {"name": "part", "groups": {"/schemagroups/sen*": "reader"}},
    "none": {"name": "none", "groups": {}},
}


def _done(api: Api, path: str, body: Any) -> None:
    api.done("PUT", path, body, authorization="Bearer root")


def _search(api: Api, query: str, by: str = "root", **headers: str) -> Any:
    return api.send("GET", f"/-/search?{query}", authorization=f"Bearer {by}", **headers)


def _xids(api: Api, query: str, by: str = "root") -> list[str]:
    answer = _search(api, query, by)
    assert answer.status_code == 200, answer.text
    return [result["xid"] for result in answer.json()["results"]]


@pytest.mark.parametrize(("query", "found"), FINDS, ids=[query for query, _ in FINDS])
def test_finds(registry: Api, query: str, found: list[str]) -> None:
    # UI-100 to UI-103
    assert _xids(registry, f"q={quote(query)}") == found


def test_results_say_where_the_words_are(registry: Api) -> None:
    # UI-100, UI-105
    answer = _search(registry, "q=order+sum").json()
    head = registry.send("GET", "/-/log/head", authorization="Bearer root").json()["position"]
    assert answer == {
        "count": 1,
        "position": head,
        "results": [
            {
                "xid": PLACED,
                "type": "schemagroups.schemas",
                "name": "Order placed",
                "matches": [
                    {"in": "id", "path": "schemaid", "text": "orderPlaced"},
                    {"in": "name", "path": "name", "text": "Order placed"},
                    {"in": "field", "path": "orderTotal", "text": "orderTotal"},
                    {"in": "field", "path": "orderTotal", "text": "Sum of all lines"},
                    {
                        "in": "description",
                        "path": "description",
                        "text": "Sent when a customer has placed an order.",
                    },
                ],
            }
        ],
    }


def test_versions_besides_the_default_ones_are_found_on_request(registry: Api) -> None:
    # UI-102
    assert _xids(registry, "q=customernumber") == [f"{ORDERS}/schemas/order"]
    assert _xids(registry, "q=orderid") == []
    assert _xids(registry, "q=orderid&versions=all") == [f"{ORDERS}/schemas/order/versions/1"]


def test_formats(registry: Api) -> None:
    # UI-100
    lines = _search(registry, "q=order&limit=2", accept="application/x-ndjson")
    assert [json.loads(line)["xid"] for line in lines.text.splitlines()] == _xids(registry, "q=order&limit=2")
    table = list(csv.DictReader(_search(registry, "q=unit&format=csv").text.splitlines()))
    assert table == [
        {
            "xid": ORDERS,
            "type": "schemagroups",
            "name": "Orders of customers",
            "in": "label",
            "path": "labels.team",
            "text": "Payments Ünit",
        }
    ]


def test_pages_have_all_results_once(registry: Api) -> None:
    # UI-104
    found, path = [], "/-/search?q=o&limit=1"
    while path:
        answer = registry.send("GET", path, authorization="Bearer root")
        found += [result["xid"] for result in answer.json()["results"]]
        assert answer.json()["count"] == len(_xids(registry, "q=o&limit=100"))
        path = answer.links.get("next", {}).get("url", "").removeprefix(BASE)
    assert found == _xids(registry, "q=o&limit=100")


@pytest.mark.parametrize(("query", "reason"), REFUSED)
def test_refused(registry: Api, query: str, reason: str) -> None:
    # UI-101, UI-104, UI-105
    answer = _search(registry, query)
    assert answer.status_code == 400
    assert reason in answer.json()["title"]


def test_callers_find_what_they_see(registry: Api) -> None:
    # ACC-71, UI-106
    assert _xids(registry, "q=order", "part") == []
    assert _search(registry, "q=order", "part").json()["count"] == 0
    assert _xids(registry, "q=reading", "part") == ["/schemagroups/sensors/schemas/reading"]
    assert _search(registry, "q=order", "none").status_code == 403


def test_an_unchanged_answer_is_not_sent_again(registry: Api) -> None:
    tag = _search(registry, "q=order").headers["etag"]
    assert _search(registry, "q=order", if_none_match=tag).status_code == 304
    assert _search(registry, "q=orders", if_none_match=tag).status_code == 200


def test_methods(registry: Api) -> None:
    assert registry.send("POST", "/-/search", {}, authorization="Bearer root").status_code == 405
    assert registry.send("GET", "/-/search/x", authorization="Bearer root").status_code == 404
    assert "GET" in registry.send("OPTIONS", "/-/search", authorization="Bearer root").headers["allow"]
