"""The composition root: builds the application of one registry from its settings."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Final, Protocol

from starlette.applications import Starlette

from annals.api.access.access_routes import ACCESS, AccessRoutes
from annals.api.access.collections import AccessContext
from annals.api.access.denial_routes import DENIALS, DenialRoutes
from annals.api.access.grant_routes import GRANTS, GrantRoutes
from annals.api.access.key_routes import KEYS, KeyRoutes
from annals.api.audit.counts import COUNTS, counts_table
from annals.api.audit.diff import DIFF, diff_table
from annals.api.audit.history import HISTORY, history_table
from annals.api.audit.interactions import INTERACTIONS, interactions_table
from annals.api.audit.responses import AuditRoutes
from annals.api.audit.tree_hash import HASH, tree_hash_table
from annals.api.auth.build import build_authenticator
from annals.api.auth.callers import Authenticator, FixedCallerAuthenticator
from annals.api.auth.files.file_error_metric import FileErrorCollector
from annals.api.auth.files.watched_files import Upkeep
from annals.api.auth.jwt_keys import is_url
from annals.api.auth.limits.denials import DenialLog
from annals.api.auth.oidc.provider import OidcProvider
from annals.api.auth.sessions.sessions import Sessions
from annals.api.auth.whoami import WHOAMI, WhoamiRoutes
from annals.api.compat.aliases import CompatAliases
from annals.api.compat.confluent.paths import BASE as CONFLUENT_BASE
from annals.api.compat.confluent.routes import ConfluentRoutes, ConfluentSettings, groups_of_path
from annals.api.compat.confluent.subjects_route import SUBJECTS, SubjectsRoutes
from annals.api.compat.openapi_routes import COMPAT_OPENAPI, CompatOpenapiRoutes
from annals.api.compat.paths import group_of_path
from annals.api.compat.routes import COMPAT, CompatRoutes
from annals.api.dispatch import Dispatcher, DispatcherApplication, Mount, ServerConfig
from annals.api.feeds.documents_route import DOCUMENTS, DocumentsRoutes
from annals.api.feeds.events_route import EVENTS, EventFeedRoutes
from annals.api.feeds.feeds import Feeds
from annals.api.feeds.log_route import LOG, LogFeedRoutes
from annals.api.http.access_log.access_log import AccessLog
from annals.api.http.access_log.route_templates import RouteTemplates
from annals.api.http.browsers.allowed_hosts import AllowedHosts
from annals.api.http.browsers.cors import Cors
from annals.api.http.canonical_header import CanonicalLinks
from annals.api.http.connections.trusted_proxies import TrustedProxies
from annals.api.http.problem_response import SUBSCRIPTIONS
from annals.api.http.request import Request
from annals.api.messaging.findings import FINDINGS, FindingsRoutes
from annals.api.messaging.match import MATCH, MatchRoutes
from annals.api.messaging.references.routes import REFERENCES, ReferencesRoutes
from annals.api.messaging.resolved import RESOLVED, ResolvedMessagesRoutes
from annals.api.ops import discovery
from annals.api.ops.archive_monitor import ArchiveCollector, ArchiveMonitor
from annals.api.ops.commit_listeners import CommitListeners
from annals.api.ops.health import LIVEZ, READYZ, HealthRoutes
from annals.api.ops.metrics import ServerMetrics
from annals.api.ops.metrics_route import METRICS, MetricsRoutes
from annals.api.ops.own_paths import OTHER_SURFACES, OWN_PATHS, PATH_TEMPLATES
from annals.api.ops.version import VERSION, VersionRoutes
from annals.api.registry.log_head_watcher import LogHeadWatcher
from annals.api.registry.open_registry import Registry, open_registry
from annals.api.registry.waitfor import PositionWaits
from annals.api.replication.metrics import add_link_metrics
from annals.api.replication.representations import LinkApiContext
from annals.api.replication.routes import LINKS, LinksRoutes
from annals.api.replication.wiring import ActiveReplication, PassiveReplication, build_link_context, build_link_service
from annals.api.settings.exposure import exposure_warnings
from annals.api.settings.settings import Settings
from annals.api.settings.settings_route import SETTINGS, SettingsRoutes
from annals.api.subscriptions.delivery_service import build_delivery_service
from annals.api.subscriptions.endpoint import write_endpoint
from annals.api.subscriptions.ports import Deliveries
from annals.api.subscriptions.previews_route import PREVIEWS, PreviewRoutes
from annals.api.subscriptions.routes import SubscriptionsRoutes
from annals.api.subscriptions.wiring import build_event_families, build_guard_for_url, build_subscription_context
from annals.api.ui.home_redirect import HomeRedirect
from annals.api.ui.own_api import OwnApi
from annals.api.ui.routes import UI_PATHS
from annals.api.ui.surface import UI, UiRoutes
from annals.api.xregistry.checks.routes import CHECK, CheckRoutes
from annals.api.xregistry.compare.routes import COMPARE, CompareRoutes
from annals.api.xregistry.imports import IMPORT, ImportRoutes
from annals.api.xregistry.openapi.routes import DOCS, INDEX, OPENAPI, OpenapiRoutes
from annals.api.xregistry.render.shortself import SHORTSELF_PATH
from annals.api.xregistry.restore import RESTORE, RestoreRoutes
from annals.api.xregistry.routes import XRegistryRoutes
from annals.api.xregistry.search.routes import SEARCH, SearchRoutes
from annals.api.xregistry.search.wiring import build_index_follower
from annals.api.xregistry.shortself_route import ShortselfRoutes
from annals.commands.command_bus import CommitListener
from annals.commands.store.append import NewSalt
from annals.commands.store.clock import Clock, utc_now
from annals.commands.store.correlation_ids import NewId
from annals.commands.store.database.registry_url import UNCONFIGURED_URL
from annals.commands.store.database.write_turns import WriteTurns
from annals.commands.store.secrets import Vault
from annals.domain.access.roles import Caller
from annals.domain.confluent.subjects import ContextIds
from annals.projections.access.denied_writes import DeniedWrites
from annals.projections.access.key_uses import KeyUses
from annals.projections.access.stored_access import StoredAccess
from annals.projections.events.event_families import EventFamily
from annals.projections.outgoing.resolver import Resolver
from annals.projections.replication.link_state import LinkStates
from annals.projections.sessions.session_store import SessionStore

#: Names that exist below `/-/`. The aliases also exist at the root, unless the model uses the name.
OWN_NAMES: Final = frozenset(
    (
        INDEX,
        VERSION,
        LIVEZ,
        READYZ,
        METRICS,
        OPENAPI,
        DOCS,
        SHORTSELF_PATH,
        EVENTS,
        LOG,
        DOCUMENTS,
        HISTORY,
        INTERACTIONS,
        DIFF,
        COMPARE,
        RESTORE,
    )
) | {
    RESOLVED,
    MATCH,
    CHECK,
    FINDINGS,
    SEARCH,
    DENIALS,
    PREVIEWS,
    COMPAT_OPENAPI,
    HASH,
    COUNTS,
    LINKS,
    IMPORT,
    WHOAMI,
    KEYS,
    GRANTS,
    ACCESS,
    REFERENCES,
    SETTINGS,
    SUBJECTS,
}
#: The first segments of the paths of Confluent's API.
CONFLUENT: Final = CONFLUENT_BASE.removeprefix("/")
_LOG: Final = logging.getLogger("annals.api")
_NO_PAGES: Final = "the model has a Group type or an attribute named ui, so the server has no pages at /ui/"
ROOT_ALIASES: Final = frozenset((LIVEZ, READYZ, METRICS, OPENAPI))
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
    `state.upkeep` watches files while the store is open.
    `state.stop_checking` abandons document checks; it exists while the store is open. `state.refuse` builds the
    response to a request that the server refuses before it has read all of it.
    Raises: ValueError for tokens that cannot be parsed.
    """
    proxies, cors, upkeep = TrustedProxies(settings.trusted_proxies), Cors(settings.cors_origins), Upkeep()
    metrics, log_head_watcher = ServerMetrics(OWN_NAMES), LogHeadWatcher()
    routes = RouteTemplates((*PATH_TEMPLATES, *UI_PATHS, *(f"/{name}" for name in ROOT_ALIASES)))
    denied_writes = DeniedWrites(settings.database, settings.denials_kept) if settings.denials_kept else None
    find_groups = partial(_compat_groups, ContextIds(settings.confluent_group))
    denials = DenialLog(metrics.registry, proxies, routes, find_groups, denied_writes)
    if denied_writes:
        upkeep.repeat(denied_writes.write_due)
    stored_access, key_uses = StoredAccess(clock or utc_now), KeyUses(settings.database) if settings.api_keys else None
    provider = build_provider(settings)
    sessions = build_sessions(settings, provider) if settings.auth.has_authenticator and not caller else None
    authenticator = (
        FixedCallerAuthenticator(caller)
        if caller
        else build_settings_authenticator(settings, upkeep, denials, stored_access, key_uses, sessions, provider)
    )
    commit_listeners = CommitListeners(metrics, log_head_watcher)
    allowed_hosts = AllowedHosts(None if caller else settings.own_hosts)
    access_log = AccessLog(settings.access_log, routes)
    server_config = ServerConfig(settings.public_url, proxies, authenticator, cors, metrics, allowed_hosts, access_log)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with AsyncExitStack() as closing:
            await open_parts(app, closing)
            yield

    async def open_parts(app: Starlette, closing: AsyncExitStack) -> None:
        """Opens the store and what works on it. closing: closes it all again, in the opposite order."""
        registry = open_registry(
            settings,
            clock=clock,
            new_id=new_id,
            new_salt=new_salt,
            commit_listener=commit_listeners,
            address=address,
            write_turns=write_turns,
        )
        closing.callback(registry.close)
        if registry.readers.has_round_trips:
            asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(_THREADS, "annals-worker"))
        archive_monitor = ArchiveMonitor(registry.store)
        closing.push_async_callback(asyncio.to_thread, archive_monitor.close)
        beside_log: list[_StateBesideLog] = [part for part in (sessions, key_uses, denied_writes) if part]
        for part in beside_log:
            await asyncio.to_thread(part.open)
            closing.push_async_callback(asyncio.to_thread, part.close)
        app.state.stop_checking = registry.checker.stop
        feeds = Feeds(registry, log_head_watcher, authenticator)
        closing.callback(feeds.close)
        stored_access.open(registry.readers)

        def read_positions() -> tuple[int, int, int]:
            view = registry.readers.quick_view()
            return registry.store.log_end().position, view.position(), view.index_position()

        metrics.add_position_gauges(read_positions)
        metrics.registry.register(ArchiveCollector(archive_monitor))
        canonical_links = CanonicalLinks(registry.readers)
        xregistry_routes = XRegistryRoutes(
            registry, settings.max_body, settings.pagelimit, settings.max_inlined, canonical_links
        )
        discovery_mount = Mount(discovery.DiscoveryRoutes(settings.other_registries), allows_anonymous=True)
        fixed_mounts = dict.fromkeys(discovery.DISCOVERY_PATHS, discovery_mount)
        delivery_service = (
            build_delivery_service(settings, registry, authenticator, metrics.registry, resolver) if delivers else None
        )
        delivery_port = delivery_service.deliveries if delivery_service else deliveries
        subscription_context = build_subscription_context(
            settings, registry, resolver=resolver, deliveries=delivery_port
        )
        if settings.subscriptions_endpoint:
            write_endpoint(registry, settings.subscriptions_endpoint, registry.store.public_url or UNCONFIGURED_URL)
        families = build_event_families(settings)
        states = LinkStates(settings.database)
        replication_service = build_link_service(settings, registry, states) if delivers else None
        link_context = build_link_context(settings, registry, states)
        replication = (
            ActiveReplication(states, link_context, replication_service)
            if replication_service
            else PassiveReplication(states, link_context)
        )
        add_link_metrics(metrics.registry, registry.readers, replication)
        own_mounts = {
            **_server_mounts(registry, metrics, archive_monitor),
            SETTINGS: Mount(SettingsRoutes(settings), is_leaf=True),
            DENIALS: Mount(DenialRoutes(denied_writes), is_leaf=True),
            SUBJECTS: Mount(
                SubjectsRoutes(registry, ContextIds(settings.confluent_group), settings.confluent_compatibility),
                is_leaf=True,
            ),
            WHOAMI: Mount(WhoamiRoutes(authenticator), allows_anonymous=True, is_leaf=True),
            **_document_mounts(registry, settings.max_body),
            **_history_mounts(registry, feeds, families),
            REFERENCES: Mount(ReferencesRoutes(registry, families, ContextIds(settings.confluent_group))),
            LOG: Mount(LogFeedRoutes(feeds, replication.upstream)),
            LINKS: Mount(
                LinksRoutes(LinkApiContext(registry, replication, canonical_links.invalidate), authenticator),
                allows_anonymous=True,
            ),
            **_access_mounts(AccessContext(registry, stored_access), authenticator, key_uses),
            PREVIEWS: Mount(PreviewRoutes(subscription_context, authenticator, families), allows_anonymous=True),
        }
        tree_mounts = {
            SUBSCRIPTIONS: Mount(SubscriptionsRoutes(subscription_context)),
            **_compat_mounts(registry, settings, authenticator),
        }
        if settings.ui:
            if not xregistry_routes.is_free(UI):
                _LOG.warning(_NO_PAGES)
            own_api = OwnApi(lambda request, receive: dispatcher.answer_own(request, receive))
            tree_mounts[UI] = _ui_mount(
                UiRoutes(authenticator, own_api, sessions, provider, exposure_warnings(settings))
            )
        aliases = CompatAliases(settings.compat_hosts, xregistry_routes.is_free)
        dispatcher = Dispatcher(
            xregistry_routes,
            own_mounts,
            ROOT_ALIASES,
            fixed_mounts,
            server_config,
            tree_mounts,
            aliases.canonical_request,
            registry.store.damage,
            PositionWaits(registry.readers, log_head_watcher, settings.waitfor_seconds).wait,
            HomeRedirect(partial(xregistry_routes.is_free, UI)) if settings.ui else None,
        )
        metrics.registry.register(FileErrorCollector(upkeep))
        app.router.default, app.state.refuse = dispatcher, dispatcher.refuse
        index_follower = build_index_follower(settings.database, registry) if delivers else None
        services = [service for service in (delivery_service, replication_service, index_follower) if service]
        _start(services, commit_listeners, closing)
        closing.callback(log_head_watcher.stop)
        closing.callback(access_log.close)
        upkeep_task = asyncio.create_task(upkeep.run())
        closing.callback(upkeep_task.cancel)

    app = DispatcherApplication(lifespan=lifespan)
    app.router.redirect_slashes = False
    app.state.upkeep = upkeep
    app.state.stop_following = log_head_watcher.stop
    return app


def _server_mounts(registry: Registry, metrics: ServerMetrics, archive_monitor: ArchiveMonitor) -> Mapping[str, Mount]:
    """Surfaces below `/-/` about the server and its OpenAPI documents."""
    health_routes, openapi_routes = (
        HealthRoutes(registry, archive_monitor),
        OpenapiRoutes(registry, OWN_PATHS, OTHER_SURFACES),
    )
    return {
        LIVEZ: Mount(health_routes, allows_anonymous=True, is_leaf=True, accepts_any_host=True),
        READYZ: Mount(health_routes, allows_anonymous=True, is_leaf=True, accepts_any_host=True),
        METRICS: Mount(MetricsRoutes(metrics), is_leaf=True),
        VERSION: Mount(VersionRoutes(), is_leaf=True),
        INDEX: Mount(openapi_routes),
        OPENAPI: Mount(openapi_routes, is_leaf=True),
        DOCS: Mount(openapi_routes, is_leaf=True),
        COMPAT_OPENAPI: Mount(CompatOpenapiRoutes()),
        SHORTSELF_PATH: Mount(ShortselfRoutes(registry)),
    }


def _history_mounts(registry: Registry, feeds: Feeds, families: Sequence[EventFamily]) -> Mapping[str, Mount]:
    """Surfaces below `/-/` about the log and its history."""
    return {
        EVENTS: Mount(EventFeedRoutes(feeds, families)),
        DOCUMENTS: Mount(DocumentsRoutes(registry, feeds)),
        HISTORY: Mount(AuditRoutes(registry, history_table)),
        INTERACTIONS: Mount(AuditRoutes(registry, interactions_table)),
        DIFF: Mount(AuditRoutes(registry, diff_table)),
        HASH: Mount(AuditRoutes(registry, tree_hash_table)),
        COUNTS: Mount(AuditRoutes(registry, counts_table)),
        FINDINGS: Mount(FindingsRoutes(registry)),
        RESTORE: Mount(RestoreRoutes(registry)),
    }


def _access_mounts(
    context: AccessContext, authenticator: Authenticator, key_uses: KeyUses | None
) -> Mapping[str, Mount]:
    """Surfaces below `/-/` about who may do what."""
    return {
        KEYS: Mount(KeyRoutes(context, key_uses)),
        GRANTS: Mount(GrantRoutes(context)),
        ACCESS: Mount(AccessRoutes(context, authenticator.listed_callers)),
    }


def _document_mounts(registry: Registry, max_body: int) -> Mapping[str, Mount]:
    """Surfaces below `/-/` about what documents and messages say, and imports of documents in other formats."""
    return {
        CHECK: Mount(CheckRoutes(registry, max_body), accepts_documents=True),
        COMPARE: Mount(CompareRoutes(registry, max_body), accepts_documents=True),
        SEARCH: Mount(SearchRoutes(registry), is_leaf=True),
        RESOLVED: Mount(ResolvedMessagesRoutes(registry)),
        MATCH: Mount(MatchRoutes(registry, max_body)),
        IMPORT: Mount(ImportRoutes(registry, max_body)),
    }


def _compat_mounts(registry: Registry, settings: Settings, authenticator: Authenticator) -> dict[str, Mount]:
    """Surfaces of other registries' APIs."""
    max_body = min(settings.compat_body, settings.max_body)
    confluent_settings = ConfluentSettings(
        settings.confluent_group, settings.confluent_compatibility, max_body, settings.max_body
    )
    return {
        CONFLUENT: Mount(
            ConfluentRoutes(registry, authenticator, confluent_settings),
            allows_anonymous=True,
            accepts_documents=True,
            checks_paths=True,
        ),
        COMPAT: Mount(CompatRoutes(registry, max_body, settings.inbound), accepts_documents=True),
    }


def _compat_groups(context_ids: ContextIds, request: Request) -> Collection[str]:
    """The Groups of which the path of a request to a legacy API may name one."""
    if request.segments[:2] == tuple(CONFLUENT.split("/")):
        return groups_of_path(request.raw_path, context_ids)
    group = group_of_path(request.raw_path)
    return (group,) if group else ()


class _StateBesideLog(Protocol):
    """State in tables beside the log."""

    def open(self) -> None: ...
    def close(self) -> None: ...


class _BackgroundService(CommitListener, Protocol):
    """Work beside requests, which follows commits."""

    def start(self) -> None: ...
    def stop(self) -> None: ...


def _start(services: Iterable[_BackgroundService], commit_listeners: CommitListeners, closing: AsyncExitStack) -> None:
    """Starts services. closing: stops them."""
    for service in services:
        commit_listeners.add(service)
        service.start()
        closing.push_async_callback(asyncio.to_thread, service.stop)


def _ui_mount(routes: UiRoutes) -> Mount:
    """The pages, which ask for a session themselves, except those of sign-in. A model that uses their name hides them.

    They take forms.
    """
    return Mount(routes, allows_anonymous=True, accepts_documents=True, show_problem=routes.show_problem, is_alias=True)


def build_provider(settings: Settings) -> OidcProvider | None:
    """The provider that people sign in at; None without one."""
    oidc = settings.oidc
    return OidcProvider(oidc, settings.auth.claims, build_guard_for_url(oidc.issuer, settings)) if oidc else None


def build_sessions(settings: Settings, provider: OidcProvider | None) -> Sessions:
    """The sessions of people in browsers, which `open` makes usable. provider: that some of them sign in at."""
    return Sessions(SessionStore(settings.database), settings.auth.sessions, Vault(settings.master_keys), provider)


def build_settings_authenticator(
    settings: Settings,
    upkeep: Upkeep,
    denials: DenialLog | None = None,
    stored_access: StoredAccess | None = None,
    key_uses: KeyUses | None = None,
    sessions: Sessions | None = None,
    provider: OidcProvider | None = None,
) -> Authenticator:
    """The authenticator that the settings describe. upkeep: keeps it current while the server runs.

    denials: where refusals are counted and logged. stored_access: the API keys and grants in the log. key_uses: where
    uses of keys are noted. sessions: those of people in browsers. provider: of the tokens of the command line.

    Raises: ValueError for a list of callers that cannot be parsed.
    """
    keys = settings.jwt_keys
    resolver = build_guard_for_url(keys, settings) if keys and is_url(keys) else None
    if key_uses:
        upkeep.repeat(key_uses.write_due)
    proxies = TrustedProxies(settings.trusted_proxies)
    return build_authenticator(
        settings.auth, upkeep, proxies, resolver, denials, stored_access, key_uses, sessions, provider
    )
