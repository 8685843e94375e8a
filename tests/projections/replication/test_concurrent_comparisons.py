"""The status of a link after comparisons and repairs that ran at the same time (LEG-913)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

from annals.api.registry.open_registry import open_registry
from annals.api.replication.wiring import build_link_context
from annals.api.settings.settings import Settings
from annals.domain.decisions.commands import WriteMethod, WriteTree
from annals.domain.replication.link import Link
from annals.projections.replication.link_state import LinkStates
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.log.link_status import compare_registries
from annals.projections.replication.log.repair import repair
from annals.projections.replication.remote.remote_client import RemoteClient
from tests.support.registries.restarted import MASTER_KEY, registries, wait_until_equal_logs
from tests.support.registries.stray_writes import write_as_link

LINK_ID: Final = "primary"
XID: Final = "/schemagroups/group1/schemas/s0/versions/1"


class _InterruptedClient(RemoteClient):
    """A client of another registry. Before its first request for hashes, something else happens."""

    def __init__(self, context: LinkWorkerContext, link: Link, happens: Callable[[], object]) -> None:
        super().__init__(link.url, context.resolver, context.credential(link))
        self._happens: Callable[[], object] | None = happens

    def request(self, method: str, path: str, **options: Any) -> Any:
        if path.startswith("/-/hash") and self._happens is not None:
            happens, self._happens = self._happens, None
            happens()
        return super().request(method, path, **options)


@contextmanager
def diverged_link(tmp_path: Path) -> Iterator[tuple[Link, LinkWorkerContext]]:
    """A link that no worker runs, whose registry differs in one Version from the other one."""
    with registries(tmp_path, "primary", "replica") as (primary, replica):
        primary.fill(2, 2)
        replica.link(LINK_ID, primary.url, interval=3600)
        wait_until_equal_logs(primary, replica)
        replica.stop()
        write_as_link(replica, LINK_ID, [WriteTree(XID, {"name": "stray"}, WriteMethod.PATCH)])
        settings = Settings(
            database=replica.database, master_key=MASTER_KEY, sinks_allow="127.0.0.1", sinks_plaintext=True
        )
        with closing(open_registry(settings)) as registry, closing(LinkStates(replica.database)) as states:
            link = registry.readers.quick_view().links.get(LINK_ID)
            assert link is not None
            yield link, build_link_context(settings, registry, states)


def test_a_comparison_that_a_repair_overtakes(tmp_path: Path) -> None:
    # LEG-913: the verdict about the state before a repair does not replace what the repair recorded
    with diverged_link(tmp_path) as (link, context):
        with closing(_InterruptedClient(context, link, lambda: repair(link, context))) as remote:
            assert compare_registries(link, context, remote) == "differs"
        status = context.states.read(link.id).status
        assert (status["verdict"], status["differences"], status["repair"]["entities"]) == ("equal", 0, 2)
        assert "difference" not in status


@pytest.mark.parametrize("counts", [True, False])
def test_comparisons_of_the_same_state(tmp_path: Path, counts: bool) -> None:
    # UI-113: the number of differences stays known when the same state is compared again without counting
    with diverged_link(tmp_path) as (link, context):
        for is_counted in (counts, False):
            compare_registries(link, context, counts=is_counted)
            status = context.states.read(link.id).status
            assert (status["verdict"], status["difference"]["xid"]) == ("differs", "/schemagroups/group1/schemas/s0")
            assert status.get("differences") == (2 if counts else None)
