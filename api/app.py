"""The composition root: builds the application of one registry from its settings."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

from starlette.applications import Starlette

from annals.api.auth.files.file_error_metric import FileErrorCollector
from annals.api.auth.files.periodic_tasks import PeriodicTasks
from annals.api.auth.limits.denials import DenialLog
from annals.api.compat.aliases import CompatAliases
from annals.api.compat.confluent.routes import groups_of_path
from annals.api.compat.paths import group_of_path
from annals.api.feeds.feeds import Feeds
from annals.api.http.access_log.access_log import AccessLog
from annals.api.http.access_log.route_templates import RouteTemplates
from annals.api.http.browsers.allowed_hosts import AllowedHosts
from annals.api.http.browsers.cors import Cors
from annals.api.http.canonical_header import CanonicalLinks
from annals.api.http.connections.trusted_proxies import TrustedProxies
from annals.api.http.request import Request
from annals.api.ops.archive_monitor import ArchiveCollector, ArchiveMonitor
from annals.api.ops.commit_listeners import CommitListeners
from annals.api.ops.metrics import ServerMetrics
from annals.api.ops.own_paths import PATH_TEMPLATES
from annals.api.registry.log_head_watcher import LogHeadWatcher
from annals.api.registry.open_registry import Registry, open_registry
from annals.api.registry.waitfor import PositionWaits
from annals.api.replication.metrics import add_link_metrics
from annals.api.replication.wiring import ActiveReplication, PassiveReplication, build_link_context, build_link_service
from annals.api.server.caller_parts import CallerParts, SideTable, build_caller_parts
from annals.api.server.dispatch import Dispatcher, DispatcherApplication, ServerConfig
from annals.api.server.mounts import (
    CONFLUENT,
    OWN_NAMES,
    ROOT_ALIASES,
    SurfaceParts,
    build_discovery_mounts,
    build_model_surface,
    build_own_mounts,
    build_page_mount,
    build_tree_mounts,
)
from annals.api.settings.settings import Settings
from annals.api.subscriptions.context import SubscriptionApiContext
from annals.api.subscriptions.delivery_service import build_delivery_service
from annals.api.subscriptions.endpoint import write_endpoint
from annals.api.subscriptions.ports import Deliveries
from annals.api.subscriptions.wiring import build_event_families, build_subscription_context
from annals.api.ui.home_redirect import HomeRedirect
from annals.api.ui.own_api import OwnApi
from annals.api.ui.routes import UI_PATHS
from annals.api.ui.surface import UI
from annals.api.xregistry.search.routes import SEARCH_POSITIONS
from annals.api.xregistry.search.wiring import build_index_follower
from annals.commands.command_bus import CommitListener
from annals.commands.store.append import NewSalt
from annals.commands.store.clock import Clock, utc_now
from annals.commands.store.correlation_ids import NewId
from annals.commands.store.database.registry_url import UNCONFIGURED_URL
from annals.commands.store.database.write_turns import WriteTurns
from annals.domain.access.roles import Caller
from annals.domain.confluent.subjects import ContextIds
from annals.projections.access.denied_writes import DeniedWrites
from annals.projections.outgoing.resolver import Resolver
from annals.projections.replication.link_state import LinkStates

_LOG: Final = logging.getLogger("annals.api")
_NO_PAGES: Final = "the model has a Group type or an attribute named ui, so the server has no pages at /ui/"
#: Number of threads with a database on a server, where many may wait for it. The default is four more than processors.
_THREADS: Final = 64


def create_app(
    settings: Settings,
    *,
    clock: Clock | None = None,
    new_id: NewId | None = None,
    new_salt: NewSalt | None = None,
    caller: Caller | None = None,
    resolver: Resolver | None = None,
    deliveries: Deliveries | None = None,
    delivers: bool = False,
    address: str | None = None,
    write_turns: WriteTurns | None = None,
) -> Starlette:
    """The ASGI application of one registry. Its lifespan opens and closes the store.

    caller: the caller of all requests; None to authenticate callers by token. resolver: resolves the addresses of
    sinks; replaces the DestinationGuard. deliveries: the state of deliveries. delivers: whether this process delivers
    events to the sinks of subscriptions. address: the address that the server listens on. write_turns: see `Store`.
    `state.stop_following` ends endless streams; a server calls it before it waits for open connections.
    `state.periodic_tasks` are repeated while the store is open.
    `state.stop_checking` abandons document checks; it exists while the store is open. `state.refuse` builds the
    response to a request that the server refuses before it has read all of it.
    Raises: ValueError for tokens that cannot be parsed.
    """
    parts = _build_server_parts(settings, clock or utc_now, caller)
    new_registry = partial(
        open_registry,
        settings,
        clock=clock,
        new_id=new_id,
        new_salt=new_salt,
        commit_listener=parts.commit_listeners,
        address=address,
        write_turns=write_turns,
    )
    new_services = partial(_build_services, parts, resolver, deliveries, delivers)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as closing:
            await _open(app, parts, new_registry, new_services, closing)
            yield

    app = DispatcherApplication(lifespan=lifespan)
    app.router.redirect_slashes = False
    app.state.periodic_tasks = parts.periodic_tasks
    app.state.stop_following = parts.log_head_watcher.stop
    return app


@dataclass(frozen=True)
class _ServerParts:
    """The parts of a server that need no open store. config: what applies to all requests."""

    settings: Settings
    config: ServerConfig
    callers: CallerParts
    metrics: ServerMetrics
    access_log: AccessLog
    log_head_watcher: LogHeadWatcher
    commit_listeners: CommitListeners
    periodic_tasks: PeriodicTasks


def _build_server_parts(settings: Settings, clock: Clock, caller: Caller | None) -> _ServerParts:
    proxies, periodic_tasks = TrustedProxies(settings.trusted_proxies), PeriodicTasks()
    routes = RouteTemplates((*PATH_TEMPLATES, *UI_PATHS, *(f"/{name}" for name in ROOT_ALIASES)))
    metrics, log_head_watcher = ServerMetrics(OWN_NAMES, routes), LogHeadWatcher()
    find_groups = partial(_compat_groups, ContextIds(settings.confluent_group))
    denied_writes = DeniedWrites(settings.database, settings.denials_kept) if settings.denials_kept else None
    denials = DenialLog(metrics.registry, proxies, routes, find_groups, denied_writes)
    callers = build_caller_parts(settings, periodic_tasks, clock, denials, denied_writes, caller)
    allowed_hosts = AllowedHosts(None if caller else settings.own_hosts)
    access_log, cors = AccessLog(settings.access_log, routes), Cors(settings.cors_origins)
    config = ServerConfig(settings.public_url, proxies, callers.authenticator, cors, metrics, allowed_hosts, access_log)
    commit_listeners = CommitListeners(metrics, log_head_watcher)
    return _ServerParts(
        settings, config, callers, metrics, access_log, log_head_watcher, commit_listeners, periodic_tasks
    )


class _BackgroundService(CommitListener, Protocol):
    """Work beside requests, which follows commits."""

    def start(self) -> None: ...
    def stop(self) -> None: ...


@dataclass(frozen=True)
class _Services:
    """What works beside requests, and what requests see of it. running: not started yet."""

    running: Iterable[_BackgroundService]
    replication: PassiveReplication
    subscriptions: SubscriptionApiContext


def _build_services(
    parts: _ServerParts, resolver: Resolver | None, deliveries: Deliveries | None, delivers: bool, registry: Registry
) -> _Services:
    """See `create_app`; without `delivers`, nothing works beside requests."""
    settings, states = parts.settings, LinkStates(parts.settings.database)
    link_context = build_link_context(settings, registry, states)
    new_context = partial(build_subscription_context, settings, registry, resolver=resolver)
    if not delivers:
        return _Services((), PassiveReplication(states, link_context), new_context(deliveries=deliveries))
    delivery_service = build_delivery_service(
        settings, registry, parts.callers.authenticator, parts.metrics.registry, resolver
    )
    link_service = build_link_service(settings, registry, states)
    index_follower = build_index_follower(settings.database, registry)
    return _Services(
        (delivery_service, link_service, index_follower),
        ActiveReplication(states, link_context, link_service),
        new_context(deliveries=delivery_service.deliveries),
    )


async def _open(
    app: Starlette,
    parts: _ServerParts,
    new_registry: Callable[[], Registry],
    new_services: Callable[[Registry], _Services],
    closing: AsyncExitStack,
) -> None:
    """Opens the store and what works on it. closing: closes it all again, in the opposite order."""
    registry = new_registry()
    closing.callback(registry.close)
    app.state.stop_checking = registry.checker.stop
    if registry.readers.is_server:
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS, "annals-worker"))
    archive_monitor = ArchiveMonitor(registry.store)
    closing.push_async_callback(asyncio.to_thread, archive_monitor.close)
    await _open_tables(parts.callers.tables, closing)
    parts.callers.stored_access.open(registry.readers)
    feeds = Feeds(registry, parts.log_head_watcher, parts.callers.authenticator)
    closing.callback(feeds.close)
    _add_metrics(parts, registry, archive_monitor)
    services = new_services(registry)
    add_link_metrics(parts.metrics.registry, registry.readers, services.replication)
    if endpoint := parts.settings.subscriptions_endpoint:
        write_endpoint(registry, endpoint, registry.store.public_url or UNCONFIGURED_URL)
    dispatcher = _build_dispatcher(parts, registry, archive_monitor, feeds, services)
    app.router.default, app.state.refuse = dispatcher, dispatcher.refuse
    _start(services.running, parts.commit_listeners, closing)
    closing.callback(parts.log_head_watcher.stop)
    closing.callback(parts.access_log.close)
    closing.callback(asyncio.create_task(parts.periodic_tasks.run()).cancel)


async def _open_tables(tables: Iterable[SideTable], closing: AsyncExitStack) -> None:
    for table in tables:
        await asyncio.to_thread(table.open)
        closing.push_async_callback(asyncio.to_thread, table.close)


def _add_metrics(parts: _ServerParts, registry: Registry, archive_monitor: ArchiveMonitor) -> None:
    def read_positions() -> tuple[int, int, int]:
        view = registry.readers.quick_view()
        return registry.store.log_end().position, view.position(), view.index_position()

    parts.metrics.add_position_gauges(read_positions)
    parts.metrics.registry.register(ArchiveCollector(archive_monitor))
    parts.metrics.registry.register(FileErrorCollector(parts.periodic_tasks))


def _build_dispatcher(
    parts: _ServerParts, registry: Registry, archive_monitor: ArchiveMonitor, feeds: Feeds, services: _Services
) -> Dispatcher:
    settings = parts.settings
    surface_parts = SurfaceParts(
        settings,
        registry,
        parts.callers,
        parts.metrics,
        archive_monitor,
        feeds,
        build_event_families(settings),
        services.replication,
        services.subscriptions,
        CanonicalLinks(registry.readers),
    )
    model_surface, tree_mounts = build_model_surface(surface_parts), build_tree_mounts(surface_parts)
    if settings.ui:
        if not model_surface.is_free(UI):
            _LOG.warning(_NO_PAGES)
        own_api = OwnApi(lambda request, receive: dispatcher.answer_own(request, receive))
        tree_mounts[UI] = build_page_mount(surface_parts, own_api)
    dispatcher = Dispatcher(
        model_surface,
        build_own_mounts(surface_parts),
        ROOT_ALIASES,
        build_discovery_mounts(settings),
        parts.config,
        tree_mounts,
        CompatAliases(settings.compat_hosts, model_surface.is_free).canonical_request,
        registry.store.damage,
        PositionWaits(registry.readers, parts.log_head_watcher, settings.waitfor_seconds, SEARCH_POSITIONS).wait,
        HomeRedirect(partial(model_surface.is_free, UI)) if settings.ui else None,
    )
    return dispatcher


def _start(services: Iterable[_BackgroundService], commit_listeners: CommitListeners, closing: AsyncExitStack) -> None:
    """Starts services. closing: stops them."""
    for service in services:
        commit_listeners.add(service)
        service.start()
        closing.push_async_callback(asyncio.to_thread, service.stop)


def _compat_groups(context_ids: ContextIds, request: Request) -> Collection[str]:
    """The Groups of which the path of a request to a legacy API may name one."""
    if request.segments[:2] == tuple(CONFLUENT.split("/")):
        return groups_of_path(request.raw_path, context_ids)
    group = group_of_path(request.raw_path)
    return (group,) if group else ()
