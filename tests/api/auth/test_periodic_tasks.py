"""The periodic tasks of a server."""

from __future__ import annotations

import asyncio

from annals.api.auth.files.periodic_tasks import PeriodicTasks


def test_a_task_that_fails_stops_no_other() -> None:
    # ACC-47, ACC-48: files of passwords and tokens are checked as long as the server runs
    tasks, done = PeriodicTasks(), list[str]()

    async def fail() -> None:
        done.append("failed")
        raise RuntimeError("once")

    async def succeed() -> None:
        done.append("succeeded")

    tasks.repeat(fail)
    tasks.repeat(succeed)
    for _ in range(2):
        asyncio.run(tasks.run_once())
    assert done == ["failed", "succeeded"] * 2
