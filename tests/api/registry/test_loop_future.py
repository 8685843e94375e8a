"""The outcome of a command reaches the coroutine that waits for it, and callbacks, however the command ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from threading import Thread

import pytest

from annals.api.registry.loop_future import LoopFuture
from annals.commands.store.write_transaction import Recorded

RECORDED = Recorded((), (), None, 0, datetime(2030, 1, 1, tzinfo=UTC))


def in_thread(work: Callable[..., object], *arguments: object) -> None:
    thread = Thread(target=work, args=arguments)
    thread.start()
    thread.join()


def test_a_result_of_another_thread_arrives() -> None:
    async def wait() -> Recorded:
        future = LoopFuture()
        assert future.set_running_or_notify_cancel()
        assert future.running()
        in_thread(future.set_result, RECORDED)
        return await future.outcome

    assert asyncio.run(wait()) is RECORDED


def test_an_error_of_another_thread_arrives() -> None:
    async def wait() -> None:
        future = LoopFuture()
        in_thread(future.set_exception, ValueError("refused"))
        await future.outcome

    with pytest.raises(ValueError, match="refused"):
        asyncio.run(wait())


def test_a_cancelled_command_is_not_carried_out() -> None:
    async def wait() -> tuple[bool, bool]:
        future = LoopFuture()
        future.outcome.cancel()
        return future.cancelled(), future.set_running_or_notify_cancel()

    assert asyncio.run(wait()) == (True, False)


def test_an_outcome_after_the_end_of_the_loop_is_dropped() -> None:
    async def make() -> LoopFuture:
        return LoopFuture()

    future = asyncio.run(make())
    future.set_result(RECORDED)
    future.set_exception(ValueError())


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("how", ["set_result", "cancel"])
def test_callbacks_are_called_once(when: str, how: str) -> None:
    calls: list[object] = []

    async def wait() -> None:
        future = LoopFuture()

        def end() -> None:
            if how == "cancel":
                future.outcome.cancel()
            else:
                in_thread(future.set_result, RECORDED)

        if when == "after":
            end()
        future.add_done_callback(calls.append)
        await asyncio.sleep(0.01)
        if when == "before":
            assert not calls
            end()
        await asyncio.sleep(0.01)

    asyncio.run(wait())
    assert len(calls) == 1


def test_a_callback_that_fails_does_not_end_the_thread(caplog: pytest.LogCaptureFixture) -> None:
    calls: list[object] = []

    def fail(future: object) -> None:
        raise RecursionError

    async def wait() -> Recorded:
        future = LoopFuture()
        for callback in (fail, calls.append):
            future.add_done_callback(callback)
        in_thread(future.set_result, RECORDED)
        return await future.outcome

    assert asyncio.run(wait()) is RECORDED
    assert len(calls) == 1
    assert [record.message for record in caplog.records] == ["a callback of a command failed"]
