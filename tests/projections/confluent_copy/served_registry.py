"""Registries in this process, between which tests copy, and the lines of the reports."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from threading import Lock
from typing import Any

import httpx

from annals.api.compat.confluent.paths import BASE
from annals.domain.model.builtin import default_source
from annals.projections.confluent_copy.export_run import ExportRun
from annals.projections.confluent_copy.import_run import ImportRun
from annals.projections.confluent_copy.read_copies import SubjectSource, no_report
from annals.projections.confluent_copy.report import CopyReport
from annals.projections.confluent_copy.rest_api import RestAnswer
from annals.projections.confluent_copy.rest_reader import RestReader
from tests.support.registries.in_process import Api, create, serving


class ServedRegistry:
    """A `RestApi` of a served registry. api: its client, which only one thread at a time can use.

    changes: method and path of each request that may change something.
    """

    def __init__(self, api: Api) -> None:
        self.api = api
        self.changes: list[str] = []
        self._lock = Lock()

    def send(self, method: str, path: str, body: Any = None) -> RestAnswer:
        with self._lock:
            if method != "GET":
                self.changes.append(f"{method} {path}")
            answer = self.api.send(method, BASE + path, body, confluent_accept_unknown_properties="true")
        return RestAnswer(answer.status_code, answer.json() if answer.content else None)

    def done(self, method: str, path: str, body: Any = None) -> httpx.Response:
        """The response to a request, which must succeed."""
        return self.api.done(method, BASE + path, body)

    def versions(self) -> list[tuple[str, int, int, bool]]:
        """Subject, number and id of each version, and whether it is soft-deleted."""
        listed = self.send("GET", "/schemas?subjectPrefix=:*:&deleted=true").body
        return [(one["subject"], one["version"], one["id"], one["deleted"]) for one in listed]

    def last_position(self) -> int:
        """The position of the last event in its log."""
        return int(max(one["last"] for one in self.api.get("/-/interactions")))


@contextmanager
def served_registry(folder: Path, name: str) -> Iterator[ServedRegistry]:
    """An empty registry during the block."""
    database = f"sqlite:///{folder / name}.db"
    create(database, default_source())
    with serving(database) as api:
        yield ServedRegistry(api)


def import_lines(source: SubjectSource, target: ServedRegistry, **options: Any) -> list[dict[str, Any]]:
    """The report of an import: its lines about versions, by subject and number. options: of `ImportRun`."""
    file = StringIO()
    ImportRun(source, "the source", target, CopyReport(file), **options).run()
    return _version_lines(file)


def export_lines(source: ServedRegistry, target: ServedRegistry, **options: Any) -> list[dict[str, Any]]:
    """The report of an export, like `import_lines`. options: of `ExportRun`."""
    file = StringIO()
    ExportRun(RestReader(source), target, CopyReport(file), **options).run(no_report, no_report)
    return _version_lines(file)


def _version_lines(file: StringIO) -> list[dict[str, Any]]:
    lines = [json.loads(line) for line in file.getvalue().splitlines()]
    found = [line for line in lines if "version" in line]
    return sorted(found, key=lambda line: (line["context"], line["subject"], line["version"]))
