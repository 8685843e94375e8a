"""An archive changes no response about the past, for any history and any archived part of it."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from annals.commands.verify.verify_log import verify_log, verify_row_hashes
from annals.projections.entities.rebuild import rebuild
from annals.projections.entities.verify.verify_history import verify_history
from annals.projections.segments.archive import unarchive_log
from annals.projections.segments.write import SegmentSize
from tests.support.archives import (
    archivable_positions,
    archive_until,
    archived_positions,
    forget_cached_files,
    no_progress,
    open_store,
)
from tests.support.examples import examples
from tests.support.histories import UNHURRIED, Step, as_request, database, histories
from tests.support.registries.requests import Answer, Registry, Request, serving

__all__ = ["database"]

EXAMPLES: Final = {"sqlite": 16, "postgresql": 4}
NDJSON: Final = {"accept": "application/x-ndjson"}
#: Requests for the whole past, and for moments `{0}` and `{1}` of it.
PAST: Final = (
    *("/-/log?after=0&limit=1000", "/-/events?after=0&limit=1000", "/-/history/?below&images=before,after"),
    *("/-/history/dirs/a/files/f1?below&images=after&order=desc", "/-/history/dirs/a", "/-/history/model"),
    *(
        "/-/interactions",
        "/-/diff/?from={0}&to={1}",
        "/-/diff/dirs/a?from={1}&to={0}",
        "/-/diff/dirs/b/files/f1?from=0",
    ),
    *("/-/log?after={0}", "/-/events?after={1}", "/-/interactions/c{2}", "/-/log/head?asof={0}", "/-/hash/?asof={1}"),
    *("/?inline=*&asof={0}", "/export?asof={1}", "/dirs?inline&asof={1}", "/dirs/a/files?filter=name=x&asof={0}"),
    *("/model?asof={0}", "/-/restore/dirs/a?asof={0}&dryrun"),
)
#: Requests that need no old event: for the present, and for the past in the read model.
CURRENT: Final = (
    *(
        "/?inline=*",
        "/export",
        "/dirs?inline",
        "/dirs/a/files?filter=name=x",
        "/model",
        "/-/log/head",
        "/-/interactions",
    ),
    *("/export?asof={0}", "/dirs?inline&asof={1}", "/-/log/head?asof={0}", "/-/hash/"),
)


class Past:
    """All responses about the past of a registry, for some moments."""

    def __init__(self, registry: Registry, moments: tuple[int, int, int]) -> None:
        self._registry = registry
        self._moments = moments

    async def answers(self, paths: tuple[str, ...]) -> dict[str, tuple[int, bytes]]:
        return {path: _status_and_content(await self._registry.send(self._request(path))) for path in paths}

    def _request(self, path: str) -> Request:
        method = "POST" if path.startswith("/-/restore") else "GET"
        headers = NDJSON if path.startswith(("/-/log?", "/-/events?")) else {}
        return Request(method, path.format(*self._moments), headers=headers)


def _status_and_content(answer: Answer) -> tuple[int, bytes]:
    return answer.status, answer.content


def test_an_archive_changes_no_answer(database: tuple[str, Callable[[], Any]], monkeypatch: pytest.MonkeyPatch) -> None:
    kind, empty = database
    sizes = st.builds(SegmentSize, st.integers(1, 30), st.integers(1, 8), st.just(False))
    border = st.floats(0, 1)

    @settings(max_examples=examples(EXAMPLES[kind]), **UNHURRIED)
    @given(histories(documents=True), border, border, st.tuples(border, border, border), sizes)
    def run(
        history: list[Step], first: float, second: float, moments: tuple[float, float, float], size: SegmentSize
    ) -> None:
        with empty() as url, tempfile.TemporaryDirectory() as folder, monkeypatch.context() as patch:
            asyncio.run(
                check_archive(url, Path(folder) / "archive", history, sorted((first, second)), moments, size, patch)
            )

    run()


async def check_archive(
    url: str,
    folder: Path,
    history: list[Step],
    borders: list[float],
    moments: tuple[float, float, float],
    size: SegmentSize,
    patch: pytest.MonkeyPatch,
) -> None:
    async with serving(url) as registry:
        for step in history:
            await registry.ask(as_request(step))
        (end,) = registry.stored_state()[0][0]
        past = Past(registry, (round(moments[0] * end), round(moments[1] * end), round(moments[2] * len(history))))
        before = await past.answers(PAST + CURRENT)
        assert all(status < 500 for status, _ in before.values()), before
        archived = []
        for border in borders:  # the second run continues the archive
            with open_store(url) as store:
                summary = archive_until(store, url, str(folder), round(border * end), size)
                archived = archived_positions(store)
                assert archived == archivable_positions(store, summary.last)
            forget_cached_files(patch)
            assert await past.answers(PAST + CURRENT) == before
        with open_store(url) as store:
            assert [*verify_log(store), *verify_row_hashes(store), *verify_history(store)] == []
            rebuild(store)
        assert await past.answers(PAST + CURRENT) == before
        if archived:
            await check_lost(past, folder, before, patch)
        with open_store(url) as store:
            assert unarchive_log(store, no_progress) == len(archived)
            assert archived_positions(store) == []
            shutil.rmtree(folder, ignore_errors=True)
            assert [*verify_log(store), *verify_row_hashes(store), *verify_history(store)] == []
        forget_cached_files(patch)
        assert await past.answers(PAST + CURRENT) == before


async def check_lost(past: Past, folder: Path, before: dict[str, tuple[int, bytes]], patch: pytest.MonkeyPatch) -> None:
    """A lost archive changes no response: requests for the past may be refused, those for the present are not."""
    hidden = folder.rename(folder.with_name("hidden"))
    forget_cached_files(patch)
    for path, answer in (await past.answers(PAST + CURRENT)).items():
        assert answer == before[path] or (path not in CURRENT and refused(answer)), (path, answer, before[path])
    assert refused((await past.answers(PAST[:1]))[PAST[0]])
    hidden.rename(folder)
    forget_cached_files(patch)


def refused(answer: tuple[int, bytes]) -> bool:
    return answer[0] == 503 and b"archive_unavailable" in answer[1]
