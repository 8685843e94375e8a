"""Links go on after failures, whatever fails together with the other registry."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from typing import cast

import pytest

from annals.api.registry.open_registry import open_registry
from annals.api.replication.wiring import build_link_context
from annals.api.settings.settings import Settings
from annals.domain.access.roles import Caller, Role
from annals.domain.decisions.commands import ControlLink, DeleteLink, WriteLink, WriteMethod, WriteTree
from annals.domain.errors.http_errors import NotReceiving
from annals.domain.replication.link import Link
from annals.domain.replication.link_document import parse_link
from annals.domain.values.json_text import dumps
from annals.projections.replication.link_conflicts import SUBJECT, XID, LinkConflicts
from annals.projections.replication.link_state import LinkStates
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.remote.remote_subscription import SUBSCRIPTION_KEY, RemoteSubscription
from annals.projections.replication.service import ReplicationService
from annals.projections.replication.standard.comparable import ComparableGroup
from annals.projections.replication.standard.entity_copier import EntityCopier
from annals.projections.replication.standard.local_registry import LocalRegistry
from annals.projections.replication.standard.registry_attributes import RegistryAttributesCopier, RemoteModel
from annals.projections.replication.standard.source import ListedGroup, StandardSource
from tests.projections.replication.test_remote import answering
from tests.support.polling import until
from tests.support.registries.restarted import MASTER_KEY

TOKEN = "swordfish-1"


def test_a_link_survives_an_outage_of_both_registries(store_url: str) -> None:
    # LEG-901: the link retries, and its status names the failure, without the token that the other registry repeats
    settings = Settings(database=store_url, master_key=MASTER_KEY, sinks_allow="127.0.0.1")
    problem = dumps({"type": "http://a/-/docs#any", "title": f"The token {TOKEN} is not known."})
    with answering(503, problem) as url, closing(open_registry(settings)) as registry:
        parsed = parse_link({"url": url, "dialect": "log", "credential": {"type": "bearer", "token": TOKEN}})
        command = WriteLink("/-/links/primary", True, parsed.attributes, parsed.secrets)
        registry.command_bus.submit(command, Caller("root", Role.ADMIN)).result()
        states = LinkStates(settings.database)
        context, reads = build_link_context(settings, registry, states), 0

        def reveal(link: Link) -> Mapping[str, str]:
            nonlocal reads
            reads += 1
            if reads == 2:  # after the first attempt has used the token
                raise sqlite3.OperationalError("the database does not answer")
            return context.reveal_secrets(link)

        links = registry.readers.quick_view().links
        service = ReplicationService(settings.database, replace(context, reveal_secrets=reveal), lambda: [*links.all()])
        service.start()
        try:
            error = until(lambda: states.read("primary").status.get("error"), 60)
        finally:
            service.stop()
    assert reads > 2 and "answers 503: The token *** is not known" in error


def copy_group(link: Link, context: LinkWorkerContext, conflicts: LinkConflicts) -> None:
    copier = EntityCopier(link, context, cast(StandardSource, None), {}, conflicts)
    copier.copy_group(ListedGroup("/schemagroups/g", ComparableGroup({"name": "g"}), iter(())))


def copy_registry_attributes(link: Link, context: LinkWorkerContext, conflicts: LinkConflicts) -> None:
    with answering(200, b'{"registryid":"other","name":"Other"}') as url, closing(context.connect(link, url)) as remote:
        copier = RegistryAttributesCopier(link, context)
        source = StandardSource(remote)
        copier.fetch(source, conflicts)
        copier.copy_model(RemoteModel({}, False, ()), source, LocalRegistry(context.readers.quick_view()), conflicts)


def copy_capabilities(link: Link, context: LinkWorkerContext, conflicts: LinkConflicts) -> None:
    with answering(200, b'{"formats":[],"compatibilities":{}}') as url, closing(context.connect(link, url)) as remote:
        copier = RegistryAttributesCopier(link, context)
        copier.fetch(StandardSource(remote), conflicts)
        copier.copy_capabilities(LocalRegistry(context.readers.quick_view()), conflicts)


def copy_legacy_object(link: Link, context: LinkWorkerContext, conflicts: LinkConflicts) -> None:
    del conflicts
    legacy_conflicts = LinkConflicts(link.id, context.states, SUBJECT)
    group = WriteTree("/schemagroups/g", {}, WriteMethod.PUT)
    try:
        legacy_conflicts.attempt("g", lambda: context.execute(link, group))
    finally:
        legacy_conflicts.save()


def test_a_subscription_that_stays_behind_is_logged(sqlite_url: str, caplog: pytest.LogCaptureFixture) -> None:
    # LEG-914: the other registry does not answer when its link is removed, and goes on sending events
    settings = Settings(database=sqlite_url, public_url="http://here.example", sinks_allow="127.0.0.1")
    with closing(open_registry(settings)) as registry, closing(LinkStates(sqlite_url)) as states:
        parsed, root = parse_link({"url": "http://127.0.0.1:1", "mode": "events"}), Caller("root", Role.ADMIN)
        registry.command_bus.submit(WriteLink("/-/links/up", True, parsed.attributes, parsed.secrets), root).result()
        (link,) = registry.readers.quick_view().links.all()
        states.update(link.id, None, **{SUBSCRIPTION_KEY: "s17"})
        registry.command_bus.submit(DeleteLink(link.xid), root).result()
        context = build_link_context(settings, registry, states)
        with closing(context.connect(link)) as remote:
            RemoteSubscription(link, context, remote).delete_if_unused()
    assert "the link up has ended, and its subscription s17 at http://127.0.0.1:1 could not be deleted" in caplog.text


@pytest.mark.parametrize("copy", [copy_group, copy_registry_attributes, copy_capabilities, copy_legacy_object])
def test_the_pause_of_a_link_is_no_conflict(
    store_url: str, copy: Callable[[Link, LinkWorkerContext, LinkConflicts], None]
) -> None:
    # LEG-907: an import that is running when the link is paused stores no conflict for each of its entities
    settings = Settings(database=store_url, master_key=MASTER_KEY, sinks_allow="127.0.0.1")
    with closing(open_registry(settings)) as registry, closing(LinkStates(store_url)) as states:
        parsed, root = parse_link({"url": "http://127.0.0.1:1", "dialect": "xregistry"}), Caller("root", Role.ADMIN)
        registry.command_bus.submit(WriteLink("/-/links/up", True, parsed.attributes, parsed.secrets), root).result()
        (link,) = registry.readers.quick_view().links.all()
        registry.command_bus.submit(ControlLink(link.xid, "pause"), root).result()
        context, conflicts = build_link_context(settings, registry, states), LinkConflicts(link.id, states, XID)
        with pytest.raises(NotReceiving):
            copy(link, context, conflicts)
        assert not conflicts
        assert not states.read(link.id).status.get("conflicts")
