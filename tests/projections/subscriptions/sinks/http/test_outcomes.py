"""Outcomes of attempts over HTTP: statuses, times of retries, and everything that can fail on a connection."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from base64 import b64encode
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path

import pytest
from starlette.responses import Response

from annals.projections.outgoing import http_client
from annals.projections.outgoing.destination_guard import DestinationGuard
from annals.projections.subscriptions.contract import DELIVERED, Credential, DeliveryResult
from annals.projections.subscriptions.sinks.http.messages import STRUCTURED
from annals.projections.subscriptions.sinks.http.outcomes import MAX_RETRY_AFTER, parse_retry_after
from annals.projections.subscriptions.sinks.http.sink import open_http
from tests.projections.subscriptions.events import LOCAL, event, run, send_batches, target
from tests.support.brokers.certificates import CertificateFiles, issue_certificate
from tests.support.delivery_rig import until
from tests.support.receivers import Handle, Receiver, listener, respond_with, serve_receiver

STATUSES = {
    DeliveryResult.DELIVERED: (200, 201, 202, 204, 206, 299),
    DeliveryResult.REJECTED: (300, 301, 302, 303, 304, 307, 308, 400, 413, 415, 422),
    DeliveryResult.UNAUTHORIZED: (401, 403),
    DeliveryResult.RETRY: (404, 405, 408, 409, 425, 429, 451, 500, 501, 502, 503, 504, 599),
    DeliveryResult.GONE: (410,),
}


@pytest.fixture(scope="module")
def receiver() -> Iterator[Receiver]:
    with serve_receiver(Receiver()) as served:
        yield served


@pytest.mark.parametrize("result", STATUSES)
def test_statuses(receiver: Receiver, result: DeliveryResult) -> None:
    # SUB-821, 8.3: each status has its outcome, with the status as code
    receiver.answers = [Response(status_code=status) for status in STATUSES[result]]
    outcomes = send_batches(target(receiver.url), *([event()] for _ in STATUSES[result]))
    codes = ["" if result is DeliveryResult.DELIVERED else str(status) for status in STATUSES[result]]
    assert [(outcome.result, outcome.code) for outcome in outcomes] == [(result, code) for code in codes]
    assert not any(outcome.retry_at for outcome in outcomes)


def test_redirects_are_not_followed(receiver: Receiver) -> None:
    # SUB-902: not even to the same server
    receiver.requests.clear()
    places = (f"{receiver.url}other", "http://169.254.169.254/", "/other")
    receiver.answers = [Response(status_code=307, headers={"Location": place}) for place in places]
    outcomes = send_batches(target(receiver.url), *([event()] for _ in places))
    assert {outcome.result for outcome in outcomes} == {DeliveryResult.REJECTED}
    assert [request.target for request in receiver.requests] == ["/"] * 3


def test_proxies_and_cookies_are_ignored(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    # SUB-902: deliveries ignore the proxies of the environment, and store no cookies of sinks
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    receiver.requests.clear()
    receiver.answers = [Response(status_code=204, headers={"Set-Cookie": "a=b; Path=/"})]
    first, second = send_batches(target(receiver.url), [event()], [event()])
    assert first.result is second.result is DeliveryResult.DELIVERED
    assert receiver.requests[1].header("cookie") is None


def test_when_to_come_back(receiver: Receiver) -> None:
    # 8.3: 429 and 503 give a time, in seconds or as a date; other statuses do not
    later = datetime.now(UTC).replace(microsecond=0) + timedelta(hours=1)
    receiver.answers = [
        Response(status_code=429, headers={"Retry-After": "120"}),
        Response(status_code=503, headers={"Retry-After": format_datetime(later, usegmt=True)}),
        Response(status_code=500, headers={"Retry-After": "120"}),
        Response(status_code=410, headers={"Retry-After": "120"}),
        Response(status_code=429, headers={"Retry-After": "soon"}),
    ]
    outcomes = send_batches(target(receiver.url), *([event()] for _ in range(5)))
    assert outcomes[0].retry_at is not None
    assert abs(outcomes[0].retry_at - datetime.now(UTC) - timedelta(seconds=120)) < timedelta(seconds=10)
    assert outcomes[1].retry_at == later
    assert [outcome.retry_at for outcome in outcomes[2:]] == [None] * 3
    assert outcomes[4].result is DeliveryResult.RETRY


NOW = datetime(2026, 11, 21, 20, 0, 0, tzinfo=UTC)
AFTER = {
    "1": NOW + timedelta(seconds=1),
    " 90 ": NOW + timedelta(seconds=90),
    "9" * 400: NOW + MAX_RETRY_AFTER,
    "Sat, 21 Nov 2026 20:00:30 GMT": NOW + timedelta(seconds=30),
    "Saturday, 21-Nov-26 20:00:30 GMT": NOW + timedelta(seconds=30),
    "Sat Nov 21 20:00:30 2026": NOW + timedelta(seconds=30),
    "Sat, 21 Nov 2026 21:00:30 +0100": NOW + timedelta(seconds=30),
    "Fri, 31 Dec 9999 23:59:59 GMT": NOW + MAX_RETRY_AFTER,
    # A time that is not in the future would cause many attempts at once, none of which counts.
    "0": None,
    "Sat, 21 Nov 2026 19:59:59 GMT": None,
    "-5": None,
    "1.5": None,
    "١٢": None,
    "": None,
    "Sat, 99 Foo 2026 99:99:99 GMT": None,
    "tomorrow": None,
}


@pytest.mark.parametrize("text", AFTER)
def test_forms_of_times(text: str) -> None:
    assert parse_retry_after(text, NOW) == AFTER[text]


def test_stored_responses_are_short_and_without_secrets(receiver: Receiver) -> None:
    # SUB-823, SUB-303: at most 1 KiB, on one line, without the secrets of the request
    secrets = ("tok/en+1", "key-value", "quer%20y", 'basic:se"cret')
    password = b64encode(b"me:" + secrets[3].encode()).decode()
    said = f"denied\r\n\x00 {secrets[0]} tok%2Fen%2B1 Bearer {secrets[0]} {secrets[1]} quer y {secrets[2]} {password}"
    receiver.answers = [
        Response(said.encode() + b" end", 401),
        Response(f'{{"got": "basic:se\\"cret", "all": "{password}"}}', 403),
        Response("é" * 5000, 500),
        Response(b"\xff\xfe\x00", 500),
        Response(b"\x1f\x8b\x08garbage", 500, headers={"Content-Encoding": "gzip"}),
        Response(b"", 503),
        Response("fine", 200),
    ]
    headers = {"X-Api-Key": secrets[1], "X-Other": "shown"}
    with_token = target(
        f"{receiver.url}?access={secrets[2]}", headers=headers, credential=Credential("ACCESSTOKEN", token=secrets[0])
    )
    with_password = target(receiver.url, credential=Credential("PLAIN", "me", secrets[3]))
    first = send_batches(with_token, [event()])[0]
    rest = send_batches(with_password, *([event()] for _ in range(6)))
    assert first.message.startswith("denied") and first.message.endswith("end")
    assert "\n" not in first.message and "\x00" not in first.message
    for secret in (*secrets[:3], "tok%2Fen%2B1", "quer y"):
        assert secret not in first.message
    assert "cret" not in rest[0].message and password not in rest[0].message
    assert len(rest[1].message.encode()) <= 1024 and rest[1].message.startswith("éé")
    assert [outcome.message for outcome in rest[3:]] == ["Internal Server Error", "Service Unavailable", ""]


def test_a_secret_where_reading_ends_is_not_kept_in_part() -> None:
    # SUB-303, SUB-823: 64 KiB of a response are read, which may end within a secret
    secret = "s3cr3t-" * 100
    body = (secret.encode() * 94)[: 64 * 1024 + 10]
    head = b"HTTP/1.1 500 No\r\nContent-Length: %d\r\n\r\n" % len(body)
    with listener(respond_with(head, body)) as port:
        to = target(f"http://127.0.0.1:{port}/", credential=Credential("ACCESSTOKEN", token=secret))
        assert "s3cr3t" not in send_batches(to, [event()])[0].message


# --- connections -----------------------------------------------------------------------------------------------------

OK = b"HTTP/1.1 204 No Content\r\n\r\n"


def attempt(handle: Handle, seconds: float = 5.0) -> tuple[DeliveryResult, str, float]:
    """The outcome and duration of an attempt to send to a listener."""
    with listener(handle) as port:
        began = time.monotonic()
        (outcome,) = send_batches(target(f"http://127.0.0.1:{port}/", seconds=seconds), [event()])
        assert "127.0.0.1" not in outcome.message  # SUB-904
        return outcome.result, outcome.code, time.monotonic() - began


def test_sinks_that_hang() -> None:
    # 8.3: the timeout holds for the whole attempt, whatever the sink does
    async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    drip = respond_with(*[bytes([each]) for each in b"HTTP/1.1 200 OK and so on for a long time"], pause=0.1)
    for handle in (mute, respond_with(stay=True), drip):
        result, code, seconds = attempt(handle, seconds=0.5)
        assert (result, code) == (DeliveryResult.RETRY, "timeout")
        assert seconds < 3


def test_a_body_that_hangs_takes_nothing_back() -> None:
    # The status decides the outcome, even if the body does not arrive in time
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
    assert attempt(respond_with(head, b"some", stay=True), seconds=0.5)[:2] == (DeliveryResult.DELIVERED, "")
    assert attempt(respond_with(head, b"some"))[:2] == (DeliveryResult.DELIVERED, "")
    head = b"HTTP/1.1 400 No\r\nContent-Length: 100\r\n\r\n"
    assert attempt(respond_with(head, b"some", stay=True), seconds=0.5)[:2] == (DeliveryResult.REJECTED, "400")


def test_sinks_that_break_off() -> None:
    async def reset(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(10)
        writer.transport.abort()

    assert attempt(reset)[0] is DeliveryResult.RETRY
    assert attempt(respond_with())[:2] == (DeliveryResult.RETRY, "protocol")
    assert attempt(respond_with(b"HTTP/1.1 2"))[:2] == (DeliveryResult.RETRY, "protocol")
    assert attempt(respond_with(b"SSH-2.0-OpenSSH_9.2 on 10.0.0.1\r\n"))[:2] == (DeliveryResult.RETRY, "protocol")
    assert attempt(respond_with(b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 100_000))[:2] == (
        DeliveryResult.RETRY,
        "protocol",
    )


def test_answers_without_end() -> None:
    # SUB-823: only 64 KiB of a response are read
    written = []

    async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
        try:
            for _ in range(1600):
                writer.write(b"x" * 65536)
                written.append(65536)
                await writer.drain()
        except OSError:
            return

    result, code, seconds = attempt(flood)
    assert (result, code) == (DeliveryResult.DELIVERED, "")
    assert seconds < 5 and sum(written) < 50_000_000


def test_unreachable_sinks() -> None:
    with listener(respond_with(OK)) as port:
        pass
    (outcome,) = send_batches(target(f"http://127.0.0.1:{port}/"), [event()])
    assert (outcome.result, outcome.code, outcome.message) == (
        DeliveryResult.RETRY,
        "connection",
        "the connection was refused",
    )

    async def look_up(host: str, port: int) -> Sequence[str]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    (outcome,) = send_batches(
        target("http://sink.test/"), [event()], resolver=DestinationGuard(allows_plaintext=True, look_up=look_up)
    )
    assert (outcome.result, outcome.code) == (DeliveryResult.RETRY, "name")


def test_headers_that_cannot_be_sent(receiver: Receiver) -> None:
    # SUB-907: they are refused before they are stored; a stored one could not change a request either
    to = target(receiver.url, headers={"X-A": "a\r\nX-B: b"})
    assert [(outcome.result, outcome.code) for outcome in send_batches(to, [event()])] == [
        (DeliveryResult.REJECTED, "request")
    ]
    bad = event(data={}, datacontenttype="application/json\r\nX-B: b")
    receiver.requests.clear()
    # An event with such an attribute is sent structured, so that the attribute is in the body and not in a header.
    assert send_batches(target(receiver.url, "binary"), [bad]) == [DELIVERED]
    (request,) = receiver.requests
    assert (request.header("content-type"), request.header("x-b")) == (STRUCTURED, None)


def test_many_at_a_time(receiver: Receiver) -> None:
    async def work() -> list[DeliveryResult]:
        sink = open_http(target(receiver.url), LOCAL)
        outcomes = await asyncio.gather(*(sink.send([event(str(number))]) for number in range(200)))
        await sink.close()
        return [outcome.result for outcome in outcomes]

    receiver.requests.clear()
    before = threading.active_count()
    assert run(work()) == [DeliveryResult.DELIVERED] * 200
    assert len({request.connection for request in receiver.requests}) <= 32
    assert threading.active_count() <= before


def test_idle_connections_are_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    # SUB-806: a thousand idle subscriptions do not hold a thousand connections
    monkeypatch.setattr(http_client, "IDLE_SECONDS", 60.0)
    begun: list[float] = []
    ended: list[float] = []

    async def patient(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        begun.append(time.monotonic())
        while await reader.readline():
            await reader.readuntil(b"\r\n\r\n")
            await reader.readuntil(b"}")
            writer.write(OK)
        ended.append(time.monotonic())

    async def work() -> None:
        sink = open_http(target(url), LOCAL)
        assert (await sink.send([event()])).result is DeliveryResult.DELIVERED
        assert not ended
        monkeypatch.setattr(http_client, "IDLE_SECONDS", 0.2)
        assert (await sink.send([event()])).result is DeliveryResult.DELIVERED
        await until(lambda: ended)
        assert len(begun) == 1
        assert (await sink.send([event()])).result is DeliveryResult.DELIVERED
        await sink.close()

    with listener(patient) as port:
        url = f"http://127.0.0.1:{port}/"
        run(work())


def test_an_attempt_can_be_given_up() -> None:
    async def work() -> None:
        sink = open_http(target(url), LOCAL)
        attempt = asyncio.create_task(sink.send([event()]))
        await asyncio.sleep(0.2)
        attempt.cancel()
        with pytest.raises(asyncio.CancelledError):
            await attempt
        await sink.close()

    with listener(respond_with(stay=True)) as port:
        url = f"http://127.0.0.1:{port}/"
        run(work())


# --- addresses -------------------------------------------------------------------------------------------------------


def test_a_name_that_moves_is_never_followed(receiver: Receiver) -> None:
    # SUB-901: the second look-up returns another address, and the sink does not connect to it
    port = int(receiver.url.split(":")[2].strip("/"))
    receiver.requests.clear()
    answers = [["127.0.0.1"], ["169.254.169.254"]]
    lookups: list[str] = []

    async def look_up(host: str, port: int) -> Sequence[str]:
        lookups.append(host)
        return answers.pop(0) if len(answers) > 1 else answers[0]

    guard = DestinationGuard("127.0.0.1", allows_plaintext=True, look_up=look_up)
    to = target(f"http://sink.test:{port}/")
    receiver.answers = [Response(status_code=204, headers={"Connection": "close"})]
    first, second = send_batches(to, [event()], [event()], resolver=guard)
    assert first.result is DeliveryResult.DELIVERED
    assert (second.result, second.code) == (DeliveryResult.RETRY, "address")
    assert "169.254" not in second.message  # SUB-904
    assert lookups == ["sink.test"] * 2  # once for each connection
    assert [request.header("host") for request in receiver.requests] == [f"sink.test:{port}"]


def test_addresses_are_tried_in_turn(receiver: Receiver) -> None:
    # A server listens only on the second address of the host
    port = int(receiver.url.split(":")[2].strip("/"))

    async def look_up(host: str, port: int) -> Sequence[str]:
        return ["::1", "127.0.0.1"]

    guard = DestinationGuard("127.0.0.1,[::1]", allows_plaintext=True, look_up=look_up)
    assert (
        send_batches(target(f"http://sink.test:{port}/"), [event()], resolver=guard)[0].result
        is DeliveryResult.DELIVERED
    )


def test_credentials_stay_on_the_machine_without_tls() -> None:
    # SUB-306: each connection checks the address, because a name can get another one
    async def look_up(host: str, port: int) -> Sequence[str]:
        return ["192.0.2.1"]

    guard = DestinationGuard("192.0.2.1", allows_plaintext=True, look_up=look_up)
    to = target("http://sink.test:9999/", credential=Credential("ACCESSTOKEN", token="t"), seconds=0.3)
    assert send_batches(to, [event()], resolver=guard)[0].code == "address"
    assert send_batches(target("http://sink.test:9999/", seconds=0.3), [event()], resolver=guard)[0].code != "address"


# --- TLS -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> CertificateFiles:
    return issue_certificate(tmp_path_factory.mktemp("tls"), "sink.test", "127.0.0.1")


def secured(made: CertificateFiles, ca: Path | None, host: str) -> tuple[DeliveryResult, str, str]:
    async def look_up(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    guard = DestinationGuard("127.0.0.1", ca_file=str(ca or ""), look_up=look_up)
    with serve_receiver(Receiver(), made.certificate, made.key) as served:
        url = served.url.replace("127.0.0.1", host)
        outcomes = send_batches(target(url), [event()], [event()], resolver=guard)
        return outcomes[1].result, outcomes[1].code, outcomes[1].message


def test_certificates(made: CertificateFiles) -> None:
    # SUB-906: verified for the name in the URI, by the authorities of the machine and of the operator
    assert secured(made, made.ca, "sink.test")[:2] == (DeliveryResult.DELIVERED, "")
    assert secured(made, made.ca, "127.0.0.1")[:2] == (DeliveryResult.DELIVERED, "")
    result, code, message = secured(made, made.ca, "other.test")
    assert (result, code) == (DeliveryResult.RETRY, "tls") and "other.test" in message
    assert secured(made, None, "sink.test")[:2] == (DeliveryResult.RETRY, "tls")


def test_a_sink_that_does_not_speak_tls() -> None:
    with listener(respond_with(OK)) as port:
        guard = DestinationGuard("127.0.0.1")
        (outcome,) = send_batches(target(f"https://127.0.0.1:{port}/", seconds=3), [event()], resolver=guard)
    assert outcome.result is DeliveryResult.RETRY and outcome.code in ("tls", "timeout")


def test_an_authority_that_is_not_there() -> None:
    # Every failure is an outcome
    guard = DestinationGuard("127.0.0.1", ca_file="/no/such/file.pem")
    (outcome,) = send_batches(target("https://127.0.0.1:9999/"), [event()], resolver=guard)
    assert (outcome.result, outcome.code) == (DeliveryResult.RETRY, "tls")
    assert "file.pem" not in outcome.message
    (outcome,) = send_batches(target("ftp://127.0.0.1/"), [event()])
    assert (outcome.result, outcome.code) == (DeliveryResult.REJECTED, "request")
