"""The log of a registry over HTTP, from any position to any other."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx

from projections.log.table_rows import LogTableRow
from spark_projections.log_schema import LogHead

#: Failures one after the other before a reader gives up; any row that comes counts anew.
MAX_FAILURES: Final = 6
#: Seconds without a byte.
TIMEOUT_SECONDS: Final = 60.0

#: What stands before the members of the stored state, which follow as they are.
_EVENT: Final = re.compile(
    rb'\{"position":([0-9]+),"stream":("(?:[^"\\]|\\.)*"),"revision":([0-9]+),"topic":("(?:[^"\\]|\\.)*"),'
)
_RETRYABLE: Final = frozenset((429, 500, 502, 503, 504))


class RemoteLogError(Exception):
    """The registry does not give its log, or not the one that was asked for; the message says why."""


class RemoteLog:
    """The log of the registry at a URL. token: of a caller who may read it, where the registry asks for one."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self._url = url.rstrip("/") + "/-/log"
        self._token = token

    def head(self, asof: str | None = None) -> LogHead:
        """The last interaction, or the last one that had ended at a moment. Raises: Refused."""
        failed = 0
        while True:
            try:
                with self._answer("/head", {} if asof is None else {"asof": asof}) as answer:
                    found = json.loads(answer.read())
                return LogHead(found["position"], found["chain"])
            except httpx.TransportError as error:
                failed = _wait_before_retry(failed + 1, error)

    def rows(self, after: int, end: int) -> Iterator[LogTableRow]:
        """The events beyond one position and up to another that the caller may see, in order.

        An answer that breaks off is asked for again from behind the last row that came. Raises: Refused.
        """
        failed = 0
        while after < end:
            try:
                with self._answer("", {"after": str(after), "limit": str(end - after)}) as answer:
                    onwards = _next_position(answer)
                    if onwards <= after:
                        raise RemoteLogError(f"{self._url} ends at position {onwards}, before {end}")
                    for row in _rows(_lines(answer)):
                        yield row
                        after, failed = row.position, 0
                after = onwards  # which is further where the caller may not see what comes last
            except httpx.TransportError as error:
                failed = _wait_before_retry(failed + 1, error)

    @contextmanager
    def _answer(self, below: str, query: dict[str, str]) -> Iterator[httpx.Response]:
        """An answer whose body is still to come. Raises: Refused, httpx.TransportError."""
        headers = {"accept": "application/x-ndjson" if not below else "application/json"}
        if self._token:
            headers["authorization"] = f"Bearer {self._token}"
        with _client().stream("GET", self._url + below, params=query, headers=headers) as answer:
            if answer.status_code in _RETRYABLE:
                raise httpx.ReadError(f"{answer.url} answers {answer.status_code}")
            if answer.status_code != 200:
                raise RemoteLogError(
                    f"{answer.url} answers {answer.status_code}: {answer.read().decode(errors='replace')}"
                )
            yield answer


@cache
def _client() -> httpx.Client:
    """One for each process, because making one takes longer than a small answer."""
    return httpx.Client(timeout=TIMEOUT_SECONDS)


def _wait_before_retry(failed: int, error: httpx.TransportError) -> int:
    if failed == MAX_FAILURES:
        raise RemoteLogError(f"the registry cannot be read: {error}") from error
    time.sleep(0.1 * 2**failed)
    return failed


def _next_position(answer: httpx.Response) -> int:
    """The position behind which the next answer goes on."""
    return int(parse_qs(urlsplit(answer.links["next"]["url"]).query)["after"][0])


def _lines(answer: httpx.Response) -> Iterator[bytes]:
    """Whole lines. A line end is one character here; the library would also break lines inside of texts."""
    rest = b""
    for piece in answer.iter_bytes():
        *whole, rest = (rest + piece).split(b"\n")
        yield from whole


def _rows(lines: Iterator[bytes]) -> Iterator[LogTableRow]:
    shared: dict[str, Any] = {}
    for line in lines:
        if (event := _EVENT.match(line)) is None:
            shared = _shared(json.loads(line))
            continue
        position, stream, revision, topic = map(json.loads, event.groups())
        state = (b"{" + line[event.end() :]).decode()
        yield LogTableRow(position=position, stream=stream, revision=revision, topic=topic, state=state, **shared)


def _shared(line: dict[str, Any]) -> dict[str, Any]:
    """What all rows of an interaction have, from the line that stands before them."""
    renamed = {"registry_url": line.pop("registryurl"), "statehash": bytes.fromhex(line.pop("state"))}
    return {**line, **renamed, "chain": bytes.fromhex(line["chain"])}
