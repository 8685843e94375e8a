"""Opens a registry: its store, its CommandBus, and readers of its read model."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from annals.api.http.streaming import StreamingPool
from annals.api.registry.definitions import DefinitionsCache
from annals.api.registry.entity_lookups import EntityLookups
from annals.api.registry.start_progress import RebuildLog, log_upgrade_step
from annals.commands.command_bus import CommandBus, CommitListener
from annals.commands.documents.document_checker import CheckLimits, DocumentChecker
from annals.commands.missing_schema_ids import assign_missing_schema_ids
from annals.commands.store.append import NewSalt
from annals.commands.store.clock import Clock, utc_now
from annals.commands.store.correlation_ids import NewId
from annals.commands.store.database.write_turns import WriteTurns
from annals.commands.store.log import Store
from annals.commands.store.secrets import Vault
from annals.commands.store.write_transaction import Recorded, WriteTransaction
from annals.domain.confluent.subjects import ContextIds
from annals.domain.decisions.commands import CreateRegistry
from annals.domain.decisions.world import DomainValidation
from annals.domain.model.builtin import default_source
from annals.projections.entities.apply import EntityProjection
from annals.projections.entities.publications import SqlPublications
from annals.projections.entities.rebuild import rebuild_if_stale
from annals.projections.entities.schema_versions import open_schemas
from annals.projections.entities.view_pool import ViewPool
from annals.projections.search import tables as search_tables


class RegistrySettings(Protocol):
    """The settings that a registry needs."""

    @property
    def database(self) -> str: ...
    @property
    def public_url(self) -> str | None: ...
    @property
    def registryid(self) -> str: ...
    @property
    def domain_validation(self) -> DomainValidation: ...
    @property
    def confluent_group(self) -> str: ...
    @property
    def check_workers(self) -> int: ...
    @property
    def check_seconds(self) -> float: ...
    @property
    def check_memory(self) -> int: ...
    @property
    def indexed_leaves(self) -> int: ...
    @property
    def master_keys(self) -> tuple[bytes, ...]: ...


@dataclass(frozen=True)
class Registry:
    """An open registry. Callers have to `close` it.

    checker: runs format checks of documents.
    """

    store: Store
    command_bus: CommandBus
    readers: ViewPool
    checker: DocumentChecker

    @cached_property
    def streams(self) -> StreamingPool:
        """Makes the streamed responses of all surfaces."""
        return StreamingPool(self.readers.max_streams)

    @cached_property
    def definitions(self) -> DefinitionsCache:
        """The definitions that this process read last.

        All surfaces share them, because compiling a model takes long.
        """
        return DefinitionsCache(self.readers.quick_view(), self.store.log_end)

    @cached_property
    def lookups(self) -> EntityLookups:
        """The look-ups of the event loop of this process; requests of all surfaces share their statements."""
        return EntityLookups(self.readers)

    def close(self) -> None:
        """Finishes waiting writes, except those that wait for checks, and releases all connections."""
        self.streams.close()
        self.lookups.close()
        self.checker.stop()
        self.command_bus.close()
        self.readers.close()
        self.store.close()


def open_registry(
    settings: RegistrySettings,
    *,
    clock: Clock | None = None,
    new_id: NewId | None = None,
    new_salt: NewSalt | None = None,
    commit_listener: CommitListener | None = None,
    address: str | None = None,
    write_turns: WriteTurns | None = None,
) -> Registry:
    """The registry of the settings; creates it if it does not exist.

    commit_listener: receives each commit. address: the URL that a new store records if none is configured. write_turns:
    see `Store`.
    """
    store = Store(
        settings.database,
        clock=clock or utc_now,
        new_id=new_id,
        new_salt=new_salt,
        public_url=settings.public_url or "",
        domainvalidation=settings.domain_validation,
        context_ids=ContextIds(settings.confluent_group),
        vault=Vault(settings.master_keys),
        open_publications=SqlPublications,
        open_schemas=open_schemas,
        write_turns=write_turns,
    )
    entities = EntityProjection(max_leaves=settings.indexed_leaves)
    try:
        store.create(log_upgrade_step)
        if address:
            store.ensure_public_url(address)
        create_read_model(store, entities)
    except BaseException:
        store.close()
        raise
    checker = DocumentChecker(CheckLimits(settings.check_workers, settings.check_seconds, settings.check_memory << 20))
    command_bus = CommandBus(store, [entities], observer=commit_listener, checker=checker)
    registry = Registry(store, command_bus, ViewPool(settings.database), checker)
    try:
        rebuild_if_stale(store, settings.indexed_leaves, RebuildLog())
        _create(registry, settings.registryid)
        assign_missing_schema_ids(store, command_bus)
    except BaseException:
        registry.close()
        raise
    return registry


def create_read_model(store: Store, entities: EntityProjection) -> None:
    """Creates the tables of the read model that are missing or of another program; `rebuild_if_stale` fills them.

    Those of the search index are filled by servers.
    """
    with store.writing() as transaction:
        search_tables.create(transaction.connection)
        entities.create(transaction.connection)
        entities.catch_up(transaction.connection)  # with what a process that was killed has left


class _AlreadyCreated(Exception):
    """Another process created the registry first."""


def _create(registry: Registry, registryid: str) -> None:
    """Records the first interaction of an empty log."""
    if registry.store.log_end().position:
        return

    def check_first(transaction: WriteTransaction, recorded: Recorded) -> Any:
        if recorded.events[0][0] != 1:
            raise _AlreadyCreated

    try:
        registry.command_bus.submit(CreateRegistry(registryid, default_source()), build_answer=check_first).result()
    except _AlreadyCreated:
        return
