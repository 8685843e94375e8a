"""The client's end of a WebSocket that carries AMQP, for everything that a server may send."""

from __future__ import annotations

import base64
import hashlib
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annals.domain.subscriptions.error_places import ErrorPlace
from annals.domain.subscriptions.sink_uris import AMQP, MQTT5, parse_sink
from annals.projections.outgoing.client_websocket import ClientWebSocket

_GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def web() -> ClientWebSocket:
    return ClientWebSocket(parse_sink("wss://broker.test/amqp?x=1", AMQP, ErrorPlace()), "/", "amqp", strict=True)


def answer(request: bytes, *, protocol: str = "amqp", status: str = "101 Switching Protocols") -> bytes:
    found = re.search(rb"Sec-WebSocket-Key: (\S+)", request)
    assert found
    accept = base64.b64encode(hashlib.sha1(found[1] + _GUID.encode()).digest()).decode()
    lines = [f"HTTP/1.1 {status}", "Upgrade: websocket", "Connection: Upgrade", f"Sec-WebSocket-Accept: {accept}"]
    return "\r\n".join([*lines, f"Sec-WebSocket-Protocol: {protocol}", "", ""]).encode()


def frame(payload: bytes, kind: int = 2, last: bool = True) -> bytes:
    """A frame as servers send them, without a mask."""
    size = len(payload)
    head = bytes((0x80 * last | kind,))
    if size < 126:
        return head + bytes((size,)) + payload
    if size < 1 << 16:
        return head + b"\x7e" + size.to_bytes(2, "big") + payload
    return head + b"\x7f" + size.to_bytes(8, "big") + payload


def opened() -> ClientWebSocket:
    made = web()
    assert made.receive(answer(made.opening_request)) == b""
    assert made.is_open
    return made


def test_the_request() -> None:  # AMQP WebSocket Binding: the subprotocol is `amqp`
    request = web().opening_request
    assert request.startswith(b"GET /amqp?x=1 HTTP/1.1\r\nHost: broker.test:443\r\n")
    assert b"\r\nSec-WebSocket-Protocol: amqp\r\n" in request


@given(st.lists(st.binary(max_size=70_000), max_size=4), st.lists(st.integers(1, 5_000), min_size=1))
def test_frames_come_in_pieces(payloads: list[bytes], sizes: list[int]) -> None:  # RFC 6455, 5.4
    made = web()
    stream = answer(made.opening_request) + b"".join(map(frame, payloads))
    received, turn = b"", 0
    while stream:
        size = sizes[turn % len(sizes)]
        received += made.receive(stream[:size])
        stream, turn = stream[size:], turn + 1
    assert received == b"".join(payloads)


def test_a_message_in_several_frames_with_a_ping_between() -> None:  # RFC 6455, 5.4 and 5.5.2
    made = opened()
    assert made.receive(frame(b"ab", last=False) + frame(b"hi", kind=9) + frame(b"cd", kind=0)) == b"abcd"
    pong = made.encode_message()
    assert pong[:2] == bytes((0x8A, 0x82))
    assert bytes(a ^ b for a, b in zip(pong[6:], pong[2:6] * 1, strict=False)) == b"hi"
    assert made.encode_message() == b""


@pytest.mark.parametrize(
    "said",
    [
        frame(b"text", kind=1),
        b"\xc2\x00",  # a reserved bit
        b"\x82\x80\x00\x00\x00\x00",  # a mask, which servers do not have
        b"\x82\x7f" + (1 << 40).to_bytes(8, "big"),
    ],
)
def test_what_a_server_may_not_send(said: bytes) -> None:  # RFC 6455, 5.1, 5.2; and frames that are too large
    with pytest.raises(ConnectionError):
        opened().receive(said)


def test_a_close_comes_behind_the_data_before_it() -> None:  # RFC 6455, 5.5.1
    made = opened()
    assert not made.is_closed
    assert made.receive(frame(b"ab") + frame(b"hi", kind=9) + frame(b"\x03\xe8", kind=8) + frame(b"cd")) == b"ab"
    assert made.is_closed
    assert len(made.encode_message(b"not sent")) == 8  # the answer to the ping
    assert made.receive(b"more") == b""


@pytest.mark.parametrize("wrong", [{"status": "200 OK"}, {"status": "302 Found"}, {"protocol": "mqtt"}])
def test_servers_that_do_not_agree(wrong: dict[str, str]) -> None:  # RFC 6455, 4.1
    made = web()
    with pytest.raises(ConnectionError):
        made.receive(answer(made.opening_request, **wrong))


def test_a_server_that_names_no_subprotocol() -> None:  # RFC 6455, 4.2.2: a response without one is allowed
    at = parse_sink("ws://[2001:db8::1]", MQTT5, ErrorPlace())
    for strict in (True, False):
        made = ClientWebSocket(at, "/mqtt", "mqtt", strict)
        assert made.opening_request.startswith(b"GET /mqtt HTTP/1.1\r\nHost: [2001:db8::1]:80\r\n")
        response = answer(made.opening_request).replace(b"Sec-WebSocket-Protocol: amqp\r\n", b"")
        if strict:
            with pytest.raises(ConnectionError):
                made.receive(response)
        else:
            assert made.receive(response + frame(b"ab")) == b"ab"


@pytest.mark.parametrize("field", ["Connection: \xff", "Sec-WebSocket-Extensions: permessage-deflate", "\xff: 1"])
def test_fields_that_were_not_agreed_on(field: str) -> None:  # it raises only ConnectionError
    made = web()
    with pytest.raises(ConnectionError):
        made.receive(answer(made.opening_request).replace(b"\r\n\r\n", f"\r\n{field}\r\n\r\n".encode("latin-1")))


def test_a_connection_that_ends_in_the_answer() -> None:
    for size in (0, 1, 30):
        made = web()
        made.receive(answer(made.opening_request)[:size] or b"H")
        with pytest.raises(ConnectionError):
            made.receive(b"")
    with pytest.raises(ConnectionError):
        web().receive(b"")


def test_an_endless_answer_is_not_kept() -> None:
    made = web()
    with pytest.raises(ConnectionError):
        for _ in range(100):
            made.receive(b"x" * 1000)


@given(st.binary())
def test_nonsense_is_an_error_or_nothing(received: bytes) -> None:  # it raises only ConnectionError
    for made in (web(), opened()):
        try:
            made.receive(received)
        except ConnectionError:
            continue
