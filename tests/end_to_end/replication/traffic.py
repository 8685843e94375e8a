"""Simulated users of a registry: several concurrent writers, which make all kinds of writes without a pause."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import httpx

from tests.support.polling import until

Body = dict[str, Any] | bytes | None
#: Method, path, body and headers of a request.
Step = tuple[str, str, Body, dict[str, str]]

DETAILS = "$details"
_DOCUMENT = {"content-type": "text/plain", "xregistry-format": "Plain/1"}
_FACADE = "/compat/schemaregistry/v0.2/schemagroups"


class Traffic:
    """Writers, each with its own Groups. url: returns the present URL of the registry.

    answers: number of responses by status; 0 counts requests without a response. done: number of successful writes.
    """

    def __init__(self, url: Callable[[], str], headers: dict[str, str], seed: int, writers: int = 3) -> None:
        self._url = url
        self._headers = headers
        self._stopping = Event()
        self.answers: Counter[int] = Counter()
        self._threads = [Thread(target=self._run, args=(seed, number), daemon=True) for number in range(writers)]

    @property
    def done(self) -> int:
        """Number of successful writes."""
        return sum(count for status, count in self.answers.items() if 200 <= status < 300)

    def wait(self, writes: int) -> None:
        """Returns after this number of successful writes."""
        until(lambda: self.done >= writes, 600)

    def start(self) -> None:
        """Starts the writers."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Stops after the responses to the running requests."""
        self._stopping.set()
        for thread in self._threads:
            thread.join()

    def _run(self, seed: int, number: int) -> None:
        chance = random.Random(f"{seed} {number}")
        with httpx.Client(headers=self._headers, timeout=30) as client:
            while not self._stopping.is_set():
                method, path, body, headers = step(chance, number)
                content = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
                try:
                    answer = client.request(method, self._url() + path, content=content, headers=headers)
                    self.answers[answer.status_code] += 1
                except httpx.HTTPError:
                    self.answers[0] += 1
                    time.sleep(0.1)


def step(chance: random.Random, number: int) -> Step:
    """A random write. number: of the writer, which is the only one that writes to its Groups."""
    group = f"/schemagroups/team{number}-{chance.randrange(4)}"
    schema = f"{group}/schemas/s{chance.randrange(12)}"
    version = f"{schema}/versions/{chance.randrange(1, 6)}"
    text = "".join(chance.choices("abcdefghij é", k=chance.randrange(5, 200)))
    steps: list[tuple[int, Step]] = [
        (2, ("PATCH", group, {"description": text, "labels": {"stage": chance.choice(["dev", "test", "prod"])}}, {})),
        (12, ("PUT", schema, text.encode(), _DOCUMENT)),
        (8, ("POST", schema, text.encode(), _DOCUMENT)),
        (6, ("PUT", version, text.encode(), _DOCUMENT)),
        (8, ("PATCH", f"{schema}{DETAILS}", {"name": text[:20], "labels": {"n": text[:3]}, "format": "Plain/1"}, {})),
        (3, ("PATCH", f"{schema}/meta", {"defaultversionsticky": chance.random() < 0.5}, {})),
        (3, ("DELETE", version, None, {})),
        (2, ("DELETE", schema, None, {})),
        (1, ("DELETE", group, None, {})),
        (2, ("POST", "/", {"schemagroups": {group.rpartition("/")[2]: _group(chance, text)}}, {})),
        (2, ("PUT", f"/endpoints/team{number}-{chance.randrange(6)}", _endpoint(text), {})),
        (2, ("PUT", f"{_FACADE}/old{number}", {"format": "JsonSchema/draft-07"}, {})),
        (2, ("POST", f"{_FACADE}/old{number}/schemas/o{chance.randrange(5)}", _schema(text), {})),
    ]
    return chance.choices([each for _, each in steps], [weight for weight, _ in steps])[0]


def _group(chance: random.Random, text: str) -> dict[str, Any]:
    schemas = {f"b{number}": _member(text) for number in range(chance.randrange(5))}
    return {"name": text[:30], "schemas": schemas}


def _member(text: str) -> dict[str, Any]:
    return {"name": text[:10], "format": "Plain/1", "schema": {"type": text[:5]}}


def _endpoint(text: str) -> dict[str, Any]:
    return {"name": text[:20], "usage": ["consumer"], "messages": {"m": {"description": text}}}


def _schema(text: str) -> dict[str, Any]:
    return {"type": "object", "description": text}
