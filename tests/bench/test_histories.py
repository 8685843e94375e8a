"""Generated logs are real logs: a registry that executes the same commands writes the same bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import closing
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from annals.api.registry.open_registry import open_registry
from annals.api.settings.settings import Settings
from annals.commands.store.log import Store
from annals.commands.verify.verify_log import verify_log as walk
from annals.commands.verify.verify_log import verify_row_hashes
from annals.domain.decisions.commands import Command
from annals.domain.decisions.world import Context
from annals.projections.entities.apply import EntityProjection
from annals.projections.entities.rebuild import rebuild
from annals.projections.entities.verify.verify_history import verify_history
from annals.projections.log.table_rows import LogTableRow, table_rows
from annals.projections.segments.folder import SegmentFolder, open_folder
from annals.projections.segments.verify import verify_segments
from annals.projections.segments.write import SegmentSize, append_segments
from bench.histories import CALLERS, REGISTRYID, URL, History, HistoryStep, fill, salts, write_segments
from bench.stocking import stock
from tests.support.read_model import read_model_rows
from tests.support.segment_logs import files_below, log_rows, stored_documents

EVENTS = 1500


@pytest.fixture(scope="module")
def history() -> list[HistoryStep]:
    return list(History(EVENTS))


@pytest.mark.long
def test_a_registry_with_the_same_commands_writes_the_same_log(store_url: str, history: list[HistoryStep]) -> None:
    # Facts, states, revisions and hashes are equal: the generator skips no step between a command and the log.
    commands: list[tuple[Command, Context]] = []
    for _ in History(EVENTS, on_command=lambda command, context: commands.append((deepcopy(command), context))):
        pass
    turn = iter(commands)
    now = [next(turn)[1]]  # `open_registry` executes the first command, which creates the registry
    settings = Settings(database=store_url, public_url=URL, registryid=REGISTRYID)
    registry = open_registry(
        settings, clock=lambda: now[0].now, new_id=lambda: now[0].xregcorrelationid, new_salt=salts(1)
    )
    with closing(registry):
        for command, context in turn:
            now[0] = context
            registry.command_bus.submit(command, context.caller).result()
        assert log_rows(registry.store.engine) == _rows(history)
        assert stored_documents(registry.store.engine) == _documents(history)
        with registry.store.writing() as transaction:
            EntityProjection().catch_up(transaction.connection)
        live = _read_model(registry.store)
        rebuild(registry.store)
        assert _read_model(registry.store) == live


def test_a_filled_store_is_whole(store_url: str, history: list[HistoryStep]) -> None:
    with closing(_filled(store_url)) as store:
        assert [*walk(store), *verify_row_hashes(store), *verify_history(store)] == []
        assert log_rows(store.engine) == _rows(history)


def test_segments_are_the_files_that_would_be_written_from_a_store(sqlite_url: str, tmp_path: Path) -> None:
    size, made, written = SegmentSize(700, 200), tmp_path / "made", tmp_path / "written"
    last = write_segments(made, EVENTS, size=size)
    with closing(_filled(sqlite_url)) as store:
        assert store.log_end().chain == last.chain
    append_segments(sqlite_url, open_folder(str(written)), size)
    assert files_below(made) == files_below(written)
    assert [*verify_segments(open_folder(str(made)))] == []


@pytest.mark.parametrize(
    "every", [1, 2, 10], ids=["at the last segment", "before the last segment", "without a checkpoint"]
)
def test_a_run_that_was_stopped_continues(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, every: int) -> None:
    size, whole, stopped = SegmentSize(300, 200), tmp_path / "whole", tmp_path / "stopped"
    write_segments(whole, EVENTS, size=size)
    monkeypatch.setattr("bench.histories._CHECKPOINT_EVERY", every)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(SegmentFolder, "add_entry", _stop_after(3, SegmentFolder.add_entry))
        write_segments(stopped, EVENTS, size=size, checkpoint=tmp_path / "checkpoint")
    assert len(open_folder(str(stopped)).ranges()) == 3
    assert (tmp_path / "checkpoint").exists() is (every < 10)
    write_segments(stopped, EVENTS, size=size, checkpoint=tmp_path / "checkpoint")
    assert files_below(stopped) == files_below(whole)


def _stop_after(count: int, write: Callable[..., None]) -> Callable[..., None]:
    """Interrupts the process, as a user does, after a number of writes."""
    calls = iter(range(count))

    def stop(*arguments: Any) -> None:
        if next(calls, None) is None:
            raise KeyboardInterrupt
        write(*arguments)

    return stop


def test_a_store_that_took_its_log_over_from_segments_is_whole(
    store_url: str, tmp_path: Path, history: list[HistoryStep]
) -> None:
    write_segments(tmp_path / "segments", EVENTS, size=SegmentSize(700, 200))
    with closing(Store(store_url, public_url=URL)) as store:
        stock(store, open_folder(str(tmp_path / "segments")))
        rebuild(store)
        assert [*walk(store), *verify_row_hashes(store), *verify_history(store)] == []
        assert log_rows(store.engine) == _rows(history)


def test_equal_seeds_give_equal_histories(history: list[HistoryStep]) -> None:
    again, other = History(EVENTS), History(EVENTS, seed=2)
    assert [step.interaction for step in again] == [step.interaction for step in history]
    assert [step.interaction for step in other][-1].chain != history[-1].interaction.chain


@pytest.mark.long
def test_a_history_has_the_shape_of_a_real_one() -> None:
    topics, streams, callers, largest, longest, times = Counter[str](), Counter[str](), Counter[str](), 0, 0, set[int]()
    documents = Counter[str]()
    for step in History(30_000):
        interaction = step.interaction
        callers[interaction.caller] += 1
        largest = max(largest, len(step.rows))
        times.add(step.context.now.year)
        documents.update(list(step.decision.documents))
        for event, row in zip(step.decision.events, step.rows, strict=True):
            topics[row.topic] += 1
            streams[row.stream] += 1
            longest = max(longest, event.attributes.get("versionscount", 0))
    assert len(topics) == 4
    assert streams.most_common(50)[49][1] > 20 > 3 > sum(streams.values()) / len(streams)
    assert len(callers) == len(CALLERS)
    assert largest > 1000
    assert longest > 500
    assert len(times) == 5
    assert documents.most_common(1)[0][1] > 1


def _filled(url: str) -> Store:
    store = Store(url, public_url=URL)
    store.create()
    for _ in fill(store, History(EVENTS)):
        pass
    rebuild(store)
    return store


def _rows(history: list[HistoryStep]) -> list[LogTableRow]:
    return [row for step in history for row in table_rows(step.interaction, step.rows)]


def _documents(history: list[HistoryStep]) -> dict[str, bytes]:
    return {digest: content for step in history for digest, content in step.decision.documents.items()}


def _read_model(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    with store.engine.connect() as connection:
        return read_model_rows(connection)
