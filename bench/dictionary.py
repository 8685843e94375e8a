"""Makes a dictionary for `annals.commands.store.compression.state_compression` from events of all kinds.

The same sources and the same release of zstandard give the same bytes. A dictionary that stores use never changes: a
new one gets another number, its own file, and a new schema of the store.

    python -m bench.dictionary FILE NUMBER
"""

from __future__ import annotations

import json
import re
import sys
from base64 import urlsafe_b64encode
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Final
from uuid import UUID

import zstandard

from annals.commands.store.clock import format_time
from annals.commands.store.log import Store
from annals.domain.compat.legacy_apis import MESSAGECATALOG, SCHEMAREGISTRY
from annals.domain.model.builtin import default_source
from bench.histories import History
from tests.data import DEFINITIONS, SCENARIOS
from tests.support.registries.in_process import MODEL, Api, create, serving
from tests.support.subscribing import BODY, KEY

#: Bytes of a dictionary. With larger ones, the references into it take more bits than its texts save.
SIZE: Final = 16 << 10
#: Events of the generated history. Not a divisor of its span, so that times have fractions of a second.
_EVENTS: Final = 12_007
#: At most so many events of a kind and a type, and at least so many if there are any, by repetition.
_MOST: Final = 1200
_LEAST: Final = 40
#: Longer states are those of models. They gain from the rest of themselves, and would crowd out the others.
_LONGEST: Final = 8 << 10

_ULID_DIGITS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_BEGAN: Final = datetime(2026, 1, 1, tzinfo=UTC)
_MICROSECONDS: Final = 5 * 365 * 86_400 * 1_000_000
_SALT: Final = re.compile(r'(?<="salt":")[^"]+')
_ID: Final = re.compile(r'(?<="xregcorrelationid":")[^"]+')
_TIME: Final = re.compile(r'(?<=")\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z(?=")')
_UUID: Final = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def train(number: int) -> bytes:
    """A dictionary with a number."""
    return zstandard.train_dictionary(SIZE, list(samples()), dict_id=number).as_bytes()


def samples() -> Iterator[bytes]:
    """States as registries store them; the same at each call."""
    values, states_by_kind = RepeatableValues(), defaultdict[tuple[str, str], list[bytes]](list)
    for topic, state in (*_generated(), *_recorded()):
        if len(state) <= _LONGEST:
            states_by_kind[topic, json.loads(state)["type"]].append(values.replace(state))
    for kind in sorted(states_by_kind):
        yield from _some(states_by_kind[kind])


class RepeatableValues:
    """Random values and times as a served registry has them. Each depends only on how many came before it."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def replace(self, state: bytes) -> bytes:
        """A state with its random values and times replaced, equal ones by equal ones."""
        text = _SALT.sub(lambda match: self._salt(match[0]), state.decode())
        text = _ID.sub(lambda match: self._ulid(match[0]), text)
        text = _UUID.sub(lambda match: self._uuid(match[0]), text)
        return _TIME.sub(lambda match: self._time(match[0]), text).encode()

    def _chance(self, value: str) -> Random:
        return Random(self._numbers.setdefault(value, len(self._numbers)))

    def _salt(self, value: str) -> str:
        return urlsafe_b64encode(self._chance(value).randbytes(16)).rstrip(b"=").decode()

    def _ulid(self, value: str) -> str:
        return "01" + "".join(self._chance(value).choices(_ULID_DIGITS, k=24))

    def _uuid(self, value: str) -> str:
        return str(UUID(int=self._chance(value).getrandbits(128), version=4))

    def _time(self, value: str) -> str:
        moment = datetime.fromisoformat(value)  # its text has no fraction in some members, and six digits in others
        chance = self._chance(str(moment))
        return format_time(_BEGAN + timedelta(microseconds=chance.randrange(_MICROSECONDS)))


def _some(states: list[bytes]) -> Iterator[bytes]:
    count = min(max(len(states), _LEAST), _MOST)
    return (states[index * len(states) // count] for index in range(count))


def _generated() -> Iterator[tuple[str, bytes]]:
    return ((row.topic, row.state) for step in History(_EVENTS) for row in step.rows)


def _recorded() -> Iterator[tuple[str, bytes]]:
    """What registries record for requests of kinds that the generated history does not have."""
    for model, write in ((default_source(), _write_documents), (MODEL, _write_own)):
        with TemporaryDirectory() as folder:
            url = f"sqlite:///{folder}/annals.db"
            create(url, model)
            with serving(url, master_key=KEY) as api:
                write(api)
                _subscribe(api)
            with closing(Store(url)) as store:
                events = store.recorder.select_notifications(1, sys.maxsize >> 1)
                yield from ((event.topic, event.state) for event in events)


def _write_documents(api: Api) -> None:
    for path in SCENARIOS.values():
        api.done("POST", "/", path.read_bytes())
    for legacy in (SCHEMAREGISTRY, MESSAGECATALOG):
        group = f"{legacy.base}/{legacy.groups if legacy is SCHEMAREGISTRY else 'messagecatalog'}/legacy"
        api.done("PUT", group, {"format": "own", "description": "before the registry"})
        for name, path in DEFINITIONS.items():
            for text in (path.read_bytes(), path.read_bytes() + b"\n"):
                api.send("POST", f"{group}/{legacy.children}/{name}", text, content_type="application/json")


def _write_own(api: Api) -> None:
    for number in range(30):
        file = f"/dirs/d{number % 3}/files/f{number}"
        api.done("PUT", f"{file}$details", {"name": f"File {number}", "size": number, "tags": ["a", "b"]})
        api.done("PATCH", f"{file}$details", {"description": f"number {number}", "epoch": 1})
        api.done("POST", f"{file}/versions", {f"v{number}": {"name": "next"}})
        api.done("PUT", f"/dirs/d{number % 3}/notes/n{number}", {"name": f"Note {number}", "labels": {"stage": "dev"}})
        if number % 5 == 0:
            api.done("DELETE", file)


def _subscribe(api: Api) -> None:
    for number in range(10):
        group = f"/groups/g{number}"
        made = api.done("POST", "/subscriptions", {**BODY, "filters": [{"prefix": {"subject": group}}]}).json()
        for action in ("pause", "resume"):
            api.send("POST", f"/subscriptions/{made['id']}/actions/{action}")
        if number % 3 == 0:
            api.done("DELETE", f"/subscriptions/{made['id']}")


def main() -> None:
    file, number = sys.argv[1:]
    Path(file).write_bytes(train(int(number)))


if __name__ == "__main__":
    main()
