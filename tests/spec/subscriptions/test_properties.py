"""Runs properties.yaml: documents of subscriptions with the realised form, or with the error that refuses them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from annals.domain.errors.http_errors import InvalidSubscription, QuotaExceeded
from annals.domain.subscriptions.sink_uris import PROTOCOLS
from annals.domain.subscriptions.subscription_document import (
    SubscriptionDocument,
    SubscriptionSupport,
    parse_subscription,
)
from annals.domain.values.json_text import loads

ROWS = yaml.load(Path(__file__).with_name("properties.yaml").read_text(), yaml.CSafeLoader)
BASE = {"sink": "https://sink.example/in", "protocol": "HTTP"}
SOURCES = {
    "xregistry": "https://r.example",
    "schemaregistry": "https://r.example/compat/schemaregistry/v0.2",
    "messagecatalog": "https://r.example/compat/messagecatalog/v0.1",
}


def row_id(row: dict[str, Any]) -> str:
    return f"{row['rule']} {row['says']}"


def parse(row: dict[str, Any]) -> SubscriptionDocument:
    offer = SubscriptionSupport(tuple(row.get("protocols", PROTOCOLS)), SOURCES, row.get("plaintext", False))
    return parse_subscription({**BASE, **row["given"]}, offer)


@pytest.mark.parametrize("row", [row for row in ROWS if "becomes" in row], ids=row_id)
def test_realised(row: dict[str, Any]) -> None:
    found = parse(row)
    assert {name: found.attributes.get(name) for name in row["becomes"]} == row["becomes"]
    assert found.secrets == row.get("secrets", {})
    assert found.missing_secrets == set()


@pytest.mark.parametrize("row", [row for row in ROWS if "refused" in row], ids=row_id)
def test_refused(row: dict[str, Any]) -> None:
    # SUB-508: an error has a code for programs, and a JSON pointer to the member
    with pytest.raises(InvalidSubscription) as caught:
        parse(row)
    assert [caught.value.extensions["code"], caught.value.extensions["pointer"]] == row["refused"]
    assert row.get("because", "") in caught.value.text()
    assert not any(secret in caught.value.text() for secret in ("u:p@", "whsec_YWJj"))


@pytest.mark.parametrize(("text", "number"), [("2.50", 2.5), ("25e-1", 2.5), ("2e0", 2), ("2", 2)])
def test_numbers_are_the_same_however_they_are_written(text: str, number: float) -> None:
    # SUB-102: only other JSON types are refused
    found = parse({"given": loads(f'{{"protocolsettings": {{"retry": {{"multiplier": {text}}}}}}}'.encode())})
    assert found.attributes["protocolsettings"]["retry"]["multiplier"] == number


def test_a_document_is_an_object() -> None:
    # SUB-102: all other JSON types are refused
    documents: tuple[Any, ...] = ([], "a", 5, None)
    for document in documents:
        with pytest.raises(InvalidSubscription) as caught:
            parse_subscription(document, SubscriptionSupport(PROTOCOLS))
        assert caught.value.extensions == {"code": "type", "pointer": ""}


def test_only_so_many_filters() -> None:
    # SUB-912: too many filters exceed a quota, which is a different error
    many = [{"prefix": {"subject": "/a"}}] * 21
    with pytest.raises(QuotaExceeded):
        parse_subscription({**BASE, "filters": many}, SubscriptionSupport(PROTOCOLS))
    assert (
        len(parse_subscription({**BASE, "filters": many[1:]}, SubscriptionSupport(PROTOCOLS)).attributes["filters"])
        == 20
    )


@pytest.mark.parametrize("row", [row for row in ROWS if "becomes" in row and not row.get("secrets")], ids=row_id)
def test_the_realised_form_is_a_document(row: dict[str, Any]) -> None:
    # SUB-841: the document that a GET returns can be written again, and has the same realised form
    found = parse(row)
    offer = SubscriptionSupport(PROTOCOLS, SOURCES, row.get("plaintext", False))
    again = parse_subscription({**found.attributes, "id": "x", "status": {"state": "active"}}, offer)
    assert again.attributes == found.attributes
    assert list(again.attributes) == list(found.attributes)
