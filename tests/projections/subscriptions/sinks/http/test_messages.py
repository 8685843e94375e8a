"""Requests over HTTP, as the CloudEvents library reads them."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator
from typing import Any

import pytest
from cloudevents.core.bindings import http
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from starlette.responses import Response

from annals.projections.subscriptions.contract import Credential, DeliveryResult
from tests.projections.subscriptions.events import event, send_batches, target
from tests.support.receivers import ReceivedRequest, Receiver, serve_receiver

EURO = "Euro € 😀"
EVENTS = {
    "without data": event(),
    "with data": event(data={"changed": ["name", EURO]}),
    "with text": event(data="Grüße", datacontenttype="text/plain"),
    "with bytes": event(data=b"\x00\xff", datacontenttype="application/octet-stream"),
    "not ASCII": event(subject=f'/a "b" 100% {EURO}', xregcorrelationid="0193e2b8", data={}),
    "with other JSON": event(data={"a": [True, None, 1.5]}, datacontenttype="application/vnd.a.b+json"),
}


def received(got: ReceivedRequest) -> Any:
    """The event in a request, as the Python library reads it."""
    return http.from_http(http.HTTPMessage(dict(got.headers), got.body), JSONFormat())


def same(one: CloudEvent, other: Any) -> bool:
    return (one.get_attributes(), one.get_data()) == (other.get_attributes(), other.get_data())


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with serve_receiver(Receiver()) as served:
        yield served


def got(receiver: Receiver, to: Any, *events: CloudEvent) -> ReceivedRequest:
    receiver.requests.clear()
    (outcome,) = send_batches(to, events)
    assert outcome.result is DeliveryResult.DELIVERED
    (request,) = receiver.requests
    return request


@pytest.mark.parametrize("name", EVENTS)
@pytest.mark.parametrize("mode", ["structured", "binary"])
def test_the_same_event_arrives(receiver: Receiver, name: str, mode: str) -> None:
    # SUB-710: the library's event is the one that was sent, in both modes
    sent_event = EVENTS[name]
    assert same(sent_event, received(got(receiver, target(receiver.url, mode), sent_event)))


def test_structured(receiver: Receiver) -> None:
    # SUB-703: data is a JSON value or base64, never both; attributes that are not set are left out
    request = got(receiver, target(receiver.url), EVENTS["with data"])
    assert request.header("content-type") == "application/cloudevents+json; charset=utf-8"
    assert not [name for name, _ in request.headers if name.startswith("ce-")]
    assert json.loads(request.body) == {
        "specversion": "1.0",
        "id": "1",
        "source": "https://registry.example.com",
        "type": "io.xregistry.version.created",
        "subject": "/schemagroups/g/schemas/s/versions/1",
        "time": "2026-11-21T20:30:15.120000Z",
        "datacontenttype": "application/json",
        "data": {"changed": ["name", EURO]},
    }
    whole = json.loads(got(receiver, target(receiver.url), EVENTS["with bytes"]).body)
    assert "data" not in whole and b64decode(whole["data_base64"]) == b"\x00\xff"
    whole = json.loads(got(receiver, target(receiver.url), event(number=5, flag=True, unset=None)).body)
    assert (whole["number"], whole["flag"]) == (5, True)
    assert not {"data", "data_base64", "unset", "datacontenttype"} & set(whole)


def test_binary(receiver: Receiver) -> None:
    # SUB-701: quotation marks, percent signs and everything but visible ASCII are percent-encoded
    made = event(data={"a": 1}, subject=EURO, quoted='100% "so"', flag=True, number=5)
    request = got(receiver, target(receiver.url, "binary"), made)
    assert request.header("ce-subject") == "Euro%20%E2%82%AC%20%F0%9F%98%80"
    assert request.header("ce-quoted") == "100%25%20%22so%22"
    assert (request.header("ce-flag"), request.header("ce-number")) == ("true", "5")
    assert request.header("ce-time") == "2026-11-21T20:30:15.120000Z"
    assert request.header("content-type") == "application/json"
    assert request.header("ce-datacontenttype") is None
    assert json.loads(request.body) == {"a": 1}
    # The library writes the same headers.
    written = http.to_binary(event(data={"a": 1}, subject=EURO), JSONFormat()).headers
    ours = dict(request.headers)
    assert all(ours[name.lower()] == value for name, value in written.items())


def test_events_without_data_go_structured(receiver: Receiver) -> None:
    # SUB-702: a webhook has a payload; receivers recognize the mode by the content type
    request = got(receiver, target(receiver.url, "binary"), EVENTS["without data"])
    assert request.header("content-type") == "application/cloudevents+json; charset=utf-8"
    assert json.loads(request.body)["id"] == "1"


def test_batches(receiver: Receiver) -> None:
    # SUB-706: if configured, in order, with the media type of batches, also for a single event
    events = [event(str(number), data={"n": number}) for number in range(3)]
    to = target(receiver.url, "batched", maxbatchsize=3)
    request = got(receiver, to, *events)
    assert request.header("content-type") == "application/cloudevents-batch+json; charset=UTF-8"
    assert [each["id"] for each in json.loads(request.body)] == ["0", "1", "2"]
    assert all(
        same(made, JSONFormat().read(None, json.dumps(one)))
        for made, one in zip(events, json.loads(request.body), strict=True)
    )
    assert len(json.loads(got(receiver, to, events[0]).body)) == 1


def test_batches_that_are_too_large(receiver: Receiver) -> None:
    # SUB-706: the sink rejects batches of more than `maxbatchsize` events or 1 MiB; the caller halves them
    receiver.requests.clear()
    large = event(data={"text": "x" * 300_000})
    small = target(receiver.url, "batched", maxbatchsize=2)
    results = [outcome.result for outcome in send_batches(small, [event()] * 3, [], [large] * 2)]
    assert results == [DeliveryResult.REJECTED, DeliveryResult.DELIVERED, DeliveryResult.DELIVERED]
    four = target(receiver.url, "batched", maxbatchsize=100)
    assert [outcome.code for outcome in send_batches(four, [large] * 4)] == ["batch"]
    assert [outcome.code for outcome in send_batches(target(receiver.url), [event()] * 2)] == ["batch"]
    assert len(receiver.requests) == 1


def test_headers_of_the_subscription(receiver: Receiver) -> None:
    # SUB-201, SUB-708: they are added, and replace no header of the binding
    own = {
        "X-Tenant": "a b",
        "X-Api-Key": "k",
        "Content-Type": "text/html",
        "CE-Id": "other",
        "Webhook-Id": "other",
        "Host": "other.test",
        "User-Agent": "Other",
    }
    request = got(receiver, target(f"{receiver.url}a/b?c=d%20e", "binary", headers=own), EVENTS["with data"])
    assert (request.header("x-tenant"), request.header("x-api-key")) == ("a b", "k")
    assert request.header("user-agent") == "Other"
    assert request.header("content-type") == "application/json"
    assert request.header("ce-id") == "1"
    assert request.header("host") == receiver.url.split("/")[2]
    assert request.header("webhook-id") is None
    assert request.target == "/a/b?c=d%20e"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH"])
def test_methods(receiver: Receiver, method: str) -> None:
    assert got(receiver, target(receiver.url, method=method), event()).method == method


CREDENTIALS = {
    "Basic w7xzZXI6cMOkc3M=": Credential("PLAIN", "üser", "päss"),
    "Bearer abc": Credential("ACCESSTOKEN", token="abc"),
    "Bearer def": Credential("REFRESHTOKEN", token="def", tokentype="BEARER"),
    "Splunk abc": Credential("ACCESSTOKEN", token="abc", tokentype="Splunk"),
}


@pytest.mark.parametrize("value", CREDENTIALS)
def test_credentials(receiver: Receiver, value: str) -> None:
    # SUB-305: sent without a challenge; only the credential sets the header
    to = target(receiver.url, credential=CREDENTIALS[value], headers={"Authorization": "mine"})
    assert got(receiver, to, event()).header("authorization") == value


def test_a_header_of_ones_own_where_there_is_no_credential(receiver: Receiver) -> None:
    to = target(receiver.url, headers={"Authorization": "mine"})
    assert got(receiver, to, event()).header("authorization") == "mine"


def test_who_sends(receiver: Receiver) -> None:
    # SUB-713: after consent, deliveries name the sender
    to = target(receiver.url, origin="registry.example.com")
    assert got(receiver, to, event()).header("webhook-request-origin") == "registry.example.com"
    assert got(receiver, target(receiver.url), event()).header("webhook-request-origin") is None


def test_connections_are_kept(receiver: Receiver) -> None:
    receiver.requests.clear()
    receiver.answers = [Response("no", 503), Response(b"x" * 1000, 200)]
    send_batches(target(receiver.url), [event("1")], [event("2")], [event("3")])
    assert len({request.connection for request in receiver.requests}) == 1


def test_events_that_cannot_be_written(receiver: Receiver) -> None:
    deep: Any = []
    for _ in range(2000):
        deep = [deep]
    made = [event(data={"a": bad}) for bad in (deep, "\ud800", object())]
    for outcome in send_batches(target(receiver.url), *([each] for each in made)):
        assert (outcome.result, outcome.code) == (DeliveryResult.REJECTED, "unwritable")
