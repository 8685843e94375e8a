"""The status of a link after comparisons and repairs that ran at the same time (LEG-913)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from annals.api.registry.open_registry import open_registry
from annals.api.replication.wiring import build_link_context
from annals.api.settings.settings import Settings
from annals.domain.access.roles import Caller, Role
from annals.domain.decisions.commands import Command, WriteLink, WriteMethod, WriteTree
from annals.domain.replication.link import Link
from annals.projections.replication.link_state import LinkStates
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.log import advanced_cursor
from annals.projections.replication.log.ingest import LogIngester
from annals.projections.replication.log.link_status import compare_registries
from annals.projections.replication.log.log_pull import fetch_interactions
from annals.projections.replication.log.repair import repair
from annals.projections.replication.log.widened_scope import fetch_widened_scope
from annals.projections.replication.remote.remote_client import RemoteClient
from tests.support.polling import until
from tests.support.registries.restarted import MASTER_KEY, Registry, registries
from tests.support.registries.stray_writes import write_as_link

LINK_ID: Final = "primary"
GROUP: Final = "/schemagroups/group1"
XID: Final = f"{GROUP}/schemas/s0/versions/1"
SCOPE: Final = {"groups": [GROUP]}
_ROOT: Final = Caller("root", Role.ADMIN)


class _InterruptedClient(RemoteClient):
    """A client of another registry. Before one of its requests, something else happens. number: of this one, from 0."""

    def __init__(self, context: LinkWorkerContext, link: Link, number: int, happens: Callable[[], object]) -> None:
        super().__init__(link.url, context.resolver, context.credential(link))
        self._happens = {number: happens}
        self._number = 0

    def _interrupt(self) -> None:
        happens = self._happens.pop(self._number, None)
        self._number += 1
        if happens is not None:
            happens()

    def request(self, *arguments: Any, **options: Any) -> Any:
        self._interrupt()
        return super().request(*arguments, **options)

    def stream(self, *arguments: Any, **options: Any) -> Any:
        self._interrupt()
        return super().stream(*arguments, **options)


@contextmanager
def stopped_links(
    tmp_path: Path, *commands: Command, **scopes: Mapping[str, Any]
) -> Iterator[tuple[Registry, LinkWorkerContext]]:
    """The other registry, and the context of links that no worker runs any more after they have imported everything.

    commands: stray writes. scopes: by the id of the link; a second link uses another name of the other registry.
    """
    with registries(tmp_path, "primary", "replica") as (primary, replica):
        primary.fill(2, 2)
        for id, scope in scopes.items():
            url = primary.url if id == LINK_ID else primary.url.replace("127.0.0.1", "localhost")
            replica.link(id, url, interval=3600, scope=scope)
        until(lambda: {replica.status(id).get("verdict") for id in scopes} == {"equal"})
        replica.stop()
        write_as_link(replica, LINK_ID, commands)
        settings = Settings(
            database=replica.database, master_key=MASTER_KEY, sinks_allow="127.0.0.1", sinks_plaintext=True
        )
        with closing(open_registry(settings)) as registry, closing(LinkStates(replica.database)) as states:
            yield primary, build_link_context(settings, registry, states)


def find_link(context: LinkWorkerContext, id: str = LINK_ID) -> Link:
    link = context.readers.quick_view().links.get(id)
    assert link is not None
    return link


@contextmanager
def diverged_link(tmp_path: Path) -> Iterator[tuple[Link, LinkWorkerContext]]:
    """A link that no worker runs, whose registry differs in one Version from the other one."""
    stray_write = WriteTree(XID, {"name": "stray"}, WriteMethod.PATCH)
    with stopped_links(tmp_path, stray_write, primary={}) as (_, context):
        yield find_link(context), context


def import_all(link: Link, context: LinkWorkerContext) -> None:
    """What a worker does that starts now."""
    with closing(RemoteClient(link.url, context.resolver, context.credential(link))) as remote:
        fetch_widened_scope(link, context, remote)
        fetch_interactions(remote, LogIngester(link, context, remote), context)


def import_without_note(link: Link, context: LinkWorkerContext) -> None:
    """What a worker has done that has recorded interactions and not stored its cursor yet."""
    cursor = context.states.read(link.id).cursor
    import_all(link, context)
    context.states.update(link.id, cursor)


def test_a_comparison_that_a_repair_overtakes(tmp_path: Path) -> None:
    # LEG-913: the verdict about the state before a repair does not replace what the repair recorded
    with diverged_link(tmp_path) as (link, context):
        with closing(_InterruptedClient(context, link, 1, lambda: repair(link, context))) as remote:
            assert compare_registries(link, context, remote) == "differs"
        status = context.states.read(link.id).status
        assert (status["verdict"], status["differences"], status["repair"]["entities"]) == ("equal", 0, 2)
        assert "difference" not in status


@pytest.mark.parametrize("scope", [{}, SCOPE])
def test_an_import_during_a_comparison_or_a_repair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, scope: Mapping[str, Any]
) -> None:
    # LEG-912, LEG-913: a worker may have recorded interactions before a comparison or repair, or record them before
    # whichever of its requests, without having stored its cursor: equal registries stay equal, and are called so
    monkeypatch.setattr(advanced_cursor, "_PAGE_EVENTS", 1)
    with stopped_links(tmp_path, primary=scope) as (primary, context):
        link = find_link(context)
        for number in range(-1, 6):
            _write(primary, f"compared{number + 1}")
            with closing(_interrupted_by_import(context, link, number)) as remote:
                assert compare_registries(link, context, remote, counts=True) == "equal", number
            import_all(link, context)

            schema = _write(primary, f"repaired{number + 1}")
            remote = _interrupted_by_import(context, link, number)
            with monkeypatch.context() as patch:
                patch.setattr(LinkWorkerContext, "connect", lambda *_, remote=remote: remote)
                assert repair(link, context) == 0, number
            status = context.states.read(link.id).status
            assert (status["verdict"], status["compared"]["here"]) == ("equal", status["compared"]["there"])
            import_all(link, context)
            assert context.readers.quick_view().entity(schema) is not None, number
            assert compare_registries(link, context) == "equal"


def _interrupted_by_import(context: LinkWorkerContext, link: Link, number: int) -> RemoteClient:
    """A client during whose request a worker imports. number: of the request; if negative, it imports at once."""
    if number < 0:
        import_without_note(link, context)
    return _InterruptedClient(context, link, number, lambda: import_without_note(link, context))


def _write(primary: Registry, id: str) -> str:
    """Writes a Schema that is in no partial scope, then one that is. Returns the xid of the latter."""
    primary.write(f"group0/{id}/1")
    primary.write(f"group1/{id}/1")
    return f"{GROUP}/schemas/{id}"


def test_an_interaction_that_came_over_another_link(tmp_path: Path) -> None:
    # LEG-913: interactions may arrive over another link first, here by another name of the other registry; that does
    # not hide what a link has yet to import
    with stopped_links(tmp_path, primary=SCOPE, other={"groups": ["/schemagroups/group0"]}) as (primary, context):
        link = find_link(context)
        primary.write("group1/s0/2")
        import_without_note(link, context)
        primary.write("group1/s0/3")
        primary.write("group0/s0/2")
        import_all(find_link(context, "other"), context)
        assert compare_registries(link, context) == "equal"
        repair(link, context)
        import_all(link, context)
        assert compare_registries(link, context) == "equal"
        assert context.readers.quick_view().entity(f"{GROUP}/schemas/s0/versions/3") is not None


def test_an_import_while_a_wider_scope_is_fetched(tmp_path: Path) -> None:
    # LEG-912, LEG-913: two requests may push at the same time; one of them imports what the other one does not know of
    with stopped_links(tmp_path, primary=SCOPE) as (primary, context):
        for number in range(6):
            for scope in (SCOPE, {"groups": [GROUP, "/schemagroups/group0"]}):
                attributes = {**find_link(context).attributes, "scope": scope}
                context.submit(WriteLink(find_link(context).xid, False, attributes, {}), _ROOT).result()
            link = find_link(context)
            primary.write(f"group0/n{number}/1")
            happens = partial(import_all, link, context)
            with closing(_InterruptedClient(context, link, number, happens)) as remote:
                fetch_widened_scope(link, context, remote)
            import_all(link, context)
            found = context.readers.quick_view().entity(f"/schemagroups/group0/schemas/n{number}")
            assert found is not None, number
            assert compare_registries(link, context) == "equal"


@pytest.mark.parametrize("counts", [True, False])
def test_comparisons_of_the_same_state(tmp_path: Path, counts: bool) -> None:
    # UI-113: the number of differences stays known when the same state is compared again without counting
    with diverged_link(tmp_path) as (link, context):
        for is_counted in (counts, False):
            compare_registries(link, context, counts=is_counted)
            status = context.states.read(link.id).status
            assert (status["verdict"], status["difference"]["xid"]) == ("differs", "/schemagroups/group1/schemas/s0")
            assert status.get("differences") == (2 if counts else None)
