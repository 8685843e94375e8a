"""The log of a registry over HTTP, between any two positions."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx

from annals.domain.values.line_buffer import LineBuffer
from annals.projections.log.table_rows import LogTableRow
from annals.spark_projections.log_schema import LogHead

#: Consecutive failures before a reader gives up; every received row resets the count.
MAX_FAILURES: Final = 6
#: The read timeout: seconds without a byte.
TIMEOUT_SECONDS: Final = 60.0

#: The members that precede those of the stored state in a line; the state follows unchanged.
_EVENT_LINE: Final = re.compile(
    rb'\{"position":([0-9]+),"stream":("(?:[^"\\]|\\.)*"),"revision":([0-9]+),"topic":("(?:[^"\\]|\\.)*"),'
)
_RETRYABLE: Final = frozenset((429, 500, 502, 503, 504))


class RemoteLogError(Exception):
    """The registry does not return its log, or not the requested one; the message says why."""


class UnreachableRegistry(RemoteLogError):
    """The registry does not answer, or not completely, also after several tries; it may do so later."""


class RemoteLog:
    """The log of the registry at a URL. token: of a caller who may read the log, where the registry requires one."""

    def __init__(self, url: str, token: str | None = None) -> None:
        self._url = url.rstrip("/") + "/-/log"
        self._root = url.rstrip("/")
        self._token = token

    def head(self, asof: str | None = None) -> LogHead:
        """The end of the last interaction, or of the last one that had ended at `asof`. Raises: RemoteLogError."""
        failures = 0
        while True:
            try:
                with self._open_response("/head", {} if asof is None else {"asof": asof}) as response:
                    content = response.read()
                return self._parse_head(content)
            except httpx.TransportError as error:
                failures = _wait_before_retry(failures + 1, error)

    def _parse_head(self, content: bytes) -> LogHead:
        try:
            head = json.loads(content)
        except ValueError:
            problem = "is not JSON"
        else:
            if isinstance(head, dict) and {"position", "chain"} <= head.keys():
                return LogHead(head["position"], head["chain"])
            problem = "has no position and chain"
        raise RemoteLogError(f"{_without_password(self._root)} is no registry: /-/log/head {problem}")

    def rows(self, after: int, end: int) -> Iterator[LogTableRow]:
        """The events after `after` up to and including `end` that the caller may read, in order.

        After an interrupted response the reader continues behind the last row that it received. Raises: RemoteLogError.
        """
        failures = 0
        while after < end:
            try:
                with self._open_response("", {"after": str(after), "limit": str(end - after)}) as response:
                    next_position = _next_position(response)
                    if next_position <= after:
                        place = _without_password(self._url)
                        raise RemoteLogError(f"{place} ends at position {next_position}, before {end}")
                    for row in _parse_rows(_lines(response)):
                        yield row
                        after, failures = row.position, 0
                after = next_position  # further than the last row where the caller may not read the last events
            except httpx.TransportError as error:
                failures = _wait_before_retry(failures + 1, error)

    def document(self, sha256: str) -> bytes | None:
        """The bytes of a document; None where the registry lacks it. Raises: RemoteLogError."""
        response = self._get(f"{self._root}/-/documents/{sha256}", "application/octet-stream")
        return None if response.status_code == 404 else response.content

    def members(self, path: str) -> Iterator[dict[str, Any]]:
        """The objects of a list, of all its pages; none where the registry lacks the path or forbids it to the caller.

        Raises: RemoteLogError.
        """
        url = self._root + path
        while url:
            response = self._get(url, "application/json", expected=(200, 403, 404))
            yield from response.json() if response.status_code == 200 else ()
            url = str(response.url.join(response.links["next"]["url"])) if "next" in response.links else ""

    def _get(self, url: str, accept: str, expected: Collection[int] = (200, 404)) -> httpx.Response:
        """A response with one of the expected statuses. Raises: RemoteLogError."""
        failures = 0
        while True:
            try:
                response = _client().get(url, headers=self._headers(accept))
                if response.status_code in _RETRYABLE:
                    raise httpx.ReadError(_described(response))
                if response.status_code not in expected:
                    raise RemoteLogError(_described(response))
                return response
            except httpx.TransportError as error:
                failures = _wait_before_retry(failures + 1, error)

    def _headers(self, accept: str) -> dict[str, str]:
        return {"accept": accept} | ({"authorization": f"Bearer {self._token}"} if self._token else {})

    @contextmanager
    def _open_response(self, path: str, query: dict[str, str]) -> Iterator[httpx.Response]:
        """A response whose body is not read yet. Raises: RemoteLogError, httpx.TransportError."""
        headers = self._headers("application/x-ndjson" if not path else "application/json")
        with _client().stream("GET", self._url + path, params=query, headers=headers) as response:
            if response.status_code != 200:
                response.read()
                error = httpx.ReadError if response.status_code in _RETRYABLE else RemoteLogError
                raise error(_described(response))
            yield response


def _described(response: httpx.Response) -> str:
    """What a registry answers to a request, with the title of the problem; without the password of its URL."""
    try:
        reason = response.json()["title"]
    except (ValueError, TypeError, LookupError):
        reason = response.text
    answer = f"{_without_password(str(response.url))} answers {response.status_code}"
    return f"{answer}: {str(reason).removesuffix('.')}" if reason else answer


def _without_password(url: str) -> str:
    return str(httpx.URL(url).copy_with(userinfo=b""))


@cache
def _client() -> httpx.Client:
    """One client per process, because creating one takes longer than a small response."""
    return httpx.Client(timeout=TIMEOUT_SECONDS)


def _wait_before_retry(failures: int, error: httpx.TransportError) -> int:
    if isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError):
        raise RemoteLogError(f"the registry cannot be read: {error}") from error  # no later try can succeed
    if failures == MAX_FAILURES:
        raise UnreachableRegistry(f"the registry cannot be read: {error}") from error
    time.sleep(0.1 * 2**failures)
    return failures


def _next_position(response: httpx.Response) -> int:
    """The position after which the next response continues."""
    return int(parse_qs(urlsplit(response.links["next"]["url"]).query)["after"][0])


def _lines(response: httpx.Response) -> Iterator[bytes]:
    """Whole lines. Only a line feed ends a line here; httpx would also split lines inside of texts."""
    incomplete_line = LineBuffer()
    for chunk in response.iter_bytes():
        yield from incomplete_line.add(chunk)


def _parse_rows(lines: Iterator[bytes]) -> Iterator[LogTableRow]:
    shared: dict[str, Any] = {}
    for line in lines:
        if (event := _EVENT_LINE.match(line)) is None:
            shared = _interaction_columns(json.loads(line))
            continue
        position, stream, revision, topic = map(json.loads, event.groups())
        state = (b"{" + line[event.end() :]).decode()
        yield LogTableRow(position=position, stream=stream, revision=revision, topic=topic, state=state, **shared)


def _interaction_columns(line: dict[str, Any]) -> dict[str, Any]:
    """The columns that all rows of an interaction share, from the line that precedes them."""
    renamed = {"registry_url": line.pop("registryurl"), "statehash": bytes.fromhex(line.pop("state"))}
    return {**line, **renamed, "chain": bytes.fromhex(line["chain"])}
