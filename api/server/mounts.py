"""Which surface answers at which path."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

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
from annals.api.auth.whoami import WHOAMI, WhoamiRoutes
from annals.api.compat.confluent.paths import BASE as CONFLUENT_BASE
from annals.api.compat.confluent.routes import ConfluentRoutes, ConfluentSettings
from annals.api.compat.confluent.subjects_route import SUBJECTS, SubjectsRoutes
from annals.api.compat.openapi_routes import COMPAT_OPENAPI, CompatOpenapiRoutes
from annals.api.compat.routes import COMPAT, CompatRoutes
from annals.api.feeds.documents_route import DOCUMENTS, DocumentsRoutes
from annals.api.feeds.events_route import EVENTS, EventFeedRoutes
from annals.api.feeds.feeds import Feeds
from annals.api.feeds.log_route import LOG, LogFeedRoutes
from annals.api.http.canonical_header import CanonicalLinks
from annals.api.http.problem_response import SUBSCRIPTIONS
from annals.api.messaging.findings import FINDINGS, FindingsRoutes
from annals.api.messaging.match import MATCH, MatchRoutes
from annals.api.messaging.references.routes import REFERENCES, ReferencesRoutes
from annals.api.messaging.resolved import RESOLVED, ResolvedMessagesRoutes
from annals.api.ops import discovery
from annals.api.ops.archive_monitor import ArchiveMonitor
from annals.api.ops.health import LIVEZ, READYZ, HealthRoutes
from annals.api.ops.metrics import ServerMetrics
from annals.api.ops.metrics_route import METRICS, MetricsRoutes
from annals.api.ops.own_paths import OTHER_SURFACES, OWN_PATHS
from annals.api.ops.version import VERSION, VersionRoutes
from annals.api.registry.open_registry import Registry
from annals.api.replication.representations import LinkApiContext
from annals.api.replication.routes import LINKS, LinksRoutes
from annals.api.replication.wiring import PassiveReplication
from annals.api.server.caller_parts import CallerParts
from annals.api.server.dispatch import Mount
from annals.api.settings.exposure import exposure_warnings
from annals.api.settings.settings import Settings
from annals.api.settings.settings_route import SETTINGS, SettingsRoutes
from annals.api.subscriptions.context import SubscriptionApiContext
from annals.api.subscriptions.previews_route import PREVIEWS, PreviewRoutes
from annals.api.subscriptions.routes import SubscriptionsRoutes
from annals.api.ui.own_api import OwnApi
from annals.api.ui.surface import UiRoutes
from annals.api.xregistry.checks.routes import CHECK, CheckRoutes
from annals.api.xregistry.compare.routes import COMPARE, CompareRoutes
from annals.api.xregistry.imports import IMPORT, ImportRoutes
from annals.api.xregistry.openapi.routes import DOCS, INDEX, OPENAPI, OpenapiRoutes
from annals.api.xregistry.render.shortself import SHORTSELF_PATH
from annals.api.xregistry.restore import RESTORE, RestoreRoutes
from annals.api.xregistry.routes import XRegistryRoutes
from annals.api.xregistry.search.routes import SEARCH, SearchRoutes
from annals.api.xregistry.shortself_route import ShortselfRoutes
from annals.domain.confluent.subjects import ContextIds
from annals.projections.events.event_families import EventFamily

#: Names that exist below `/-/`. The aliases also exist at the root, unless the model uses the name.
OWN_NAMES: Final = (
    frozenset((INDEX, VERSION, LIVEZ, READYZ, METRICS, SETTINGS, OPENAPI, DOCS, COMPAT_OPENAPI, SHORTSELF_PATH))
    | frozenset((CHECK, COMPARE, SEARCH, SUBJECTS, RESOLVED, MATCH, IMPORT))
    | frozenset((EVENTS, LOG, DOCUMENTS, HISTORY, INTERACTIONS, DIFF, HASH, COUNTS, FINDINGS, REFERENCES, RESTORE))
    | frozenset((KEYS, GRANTS, ACCESS, WHOAMI, DENIALS, LINKS, PREVIEWS))
)
#: The first segments of the paths of Confluent's API.
CONFLUENT: Final = CONFLUENT_BASE.removeprefix("/")
ROOT_ALIASES: Final = frozenset((LIVEZ, READYZ, METRICS, OPENAPI))


@dataclass(frozen=True)
class SurfaceParts:
    """What the surfaces of an open registry are built from."""

    settings: Settings
    registry: Registry
    callers: CallerParts
    metrics: ServerMetrics
    archive_monitor: ArchiveMonitor
    feeds: Feeds
    families: tuple[EventFamily, ...]
    replication: PassiveReplication
    subscriptions: SubscriptionApiContext
    canonical_links: CanonicalLinks

    @property
    def context_ids(self) -> ContextIds:
        """The contexts of Confluent's API by Group."""
        return ContextIds(self.settings.confluent_group)


def build_model_surface(parts: SurfaceParts) -> XRegistryRoutes:
    """The surface of all paths that the model describes."""
    settings = parts.settings
    return XRegistryRoutes(
        parts.registry, settings.max_body, settings.pagelimit, settings.max_inlined, parts.canonical_links
    )


def build_discovery_mounts(settings: Settings) -> Mapping[tuple[str, ...], Mount]:
    """Surfaces by whole path: those that name this registry and others."""
    mount = Mount(discovery.DiscoveryRoutes(settings.other_registries), allows_anonymous=True)
    return dict.fromkeys(discovery.DISCOVERY_PATHS, mount)


def build_own_mounts(parts: SurfaceParts) -> Mapping[str, Mount]:
    """Surfaces below `/-/`, by name."""
    return {
        **_server_mounts(parts),
        **_document_mounts(parts),
        **_history_mounts(parts),
        **_access_mounts(parts.callers, AccessContext(parts.registry, parts.callers.stored_access)),
        **_delivery_mounts(parts),
    }


def build_tree_mounts(parts: SurfaceParts) -> dict[str, Mount]:
    """Surfaces at the root, but for the pages: of the Subscriptions API and of other registries' APIs."""
    return {SUBSCRIPTIONS: Mount(SubscriptionsRoutes(parts.subscriptions)), **_compat_mounts(parts)}


def build_page_mount(parts: SurfaceParts, own_api: OwnApi) -> Mount:
    """The pages, which ask for a session themselves, except those of sign-in. A model that uses their name hides them.

    They take forms. own_api: requests of pages to the APIs.
    """
    callers = parts.callers
    warnings = exposure_warnings(parts.settings)
    routes = UiRoutes(callers.authenticator, own_api, callers.sessions, callers.provider, warnings)
    return Mount(routes, allows_anonymous=True, accepts_documents=True, show_problem=routes.show_problem, is_alias=True)


def _server_mounts(parts: SurfaceParts) -> Mapping[str, Mount]:
    """Surfaces about the server and its OpenAPI documents."""
    health_routes = HealthRoutes(parts.registry, parts.archive_monitor)
    openapi_routes = OpenapiRoutes(parts.registry, OWN_PATHS, OTHER_SURFACES)
    return {
        LIVEZ: Mount(health_routes, allows_anonymous=True, is_leaf=True, accepts_any_host=True),
        READYZ: Mount(health_routes, allows_anonymous=True, is_leaf=True, accepts_any_host=True),
        METRICS: Mount(MetricsRoutes(parts.metrics), is_leaf=True),
        VERSION: Mount(VersionRoutes(), is_leaf=True),
        SETTINGS: Mount(SettingsRoutes(parts.settings), is_leaf=True),
        INDEX: Mount(openapi_routes),
        OPENAPI: Mount(openapi_routes, is_leaf=True),
        DOCS: Mount(openapi_routes, is_leaf=True),
        COMPAT_OPENAPI: Mount(CompatOpenapiRoutes()),
        SHORTSELF_PATH: Mount(ShortselfRoutes(parts.registry)),
    }


def _history_mounts(parts: SurfaceParts) -> Mapping[str, Mount]:
    """Surfaces about the log and its history."""
    registry = parts.registry
    return {
        EVENTS: Mount(EventFeedRoutes(parts.feeds, parts.families)),
        LOG: Mount(LogFeedRoutes(parts.feeds, parts.replication.upstream)),
        DOCUMENTS: Mount(DocumentsRoutes(registry, parts.feeds)),
        HISTORY: Mount(AuditRoutes(registry, history_table)),
        INTERACTIONS: Mount(AuditRoutes(registry, interactions_table)),
        DIFF: Mount(AuditRoutes(registry, diff_table)),
        HASH: Mount(AuditRoutes(registry, tree_hash_table)),
        COUNTS: Mount(AuditRoutes(registry, counts_table)),
        FINDINGS: Mount(FindingsRoutes(registry)),
        REFERENCES: Mount(ReferencesRoutes(registry, parts.families, parts.context_ids)),
        RESTORE: Mount(RestoreRoutes(registry)),
    }


def _access_mounts(callers: CallerParts, context: AccessContext) -> Mapping[str, Mount]:
    """Surfaces about who may do what, and who was refused."""
    authenticator = callers.authenticator
    return {
        KEYS: Mount(KeyRoutes(context, callers.key_uses)),
        GRANTS: Mount(GrantRoutes(context)),
        ACCESS: Mount(AccessRoutes(context, authenticator.listed_callers)),
        WHOAMI: Mount(WhoamiRoutes(authenticator), allows_anonymous=True, is_leaf=True),
        DENIALS: Mount(DenialRoutes(callers.denied_writes), is_leaf=True),
    }


def _delivery_mounts(parts: SurfaceParts) -> Mapping[str, Mount]:
    """Surfaces about links to other registries, and previews of deliveries."""
    authenticator = parts.callers.authenticator

    def on_link_change() -> None:
        parts.canonical_links.invalidate()
        parts.replication.links_changed()

    link_context = LinkApiContext(parts.registry, parts.replication, on_link_change)
    previews = PreviewRoutes(parts.subscriptions, authenticator, parts.families)
    return {
        LINKS: Mount(LinksRoutes(link_context, authenticator), allows_anonymous=True),
        PREVIEWS: Mount(previews, allows_anonymous=True),
    }


def _document_mounts(parts: SurfaceParts) -> Mapping[str, Mount]:
    """Surfaces about what documents and messages say, and imports of documents in other formats."""
    registry, max_body = parts.registry, parts.settings.max_body
    subjects = SubjectsRoutes(registry, parts.context_ids, parts.settings.confluent_compatibility)
    return {
        CHECK: Mount(CheckRoutes(registry, max_body), accepts_documents=True),
        COMPARE: Mount(CompareRoutes(registry, max_body), accepts_documents=True),
        SEARCH: Mount(SearchRoutes(registry), is_leaf=True),
        SUBJECTS: Mount(subjects, is_leaf=True),
        RESOLVED: Mount(ResolvedMessagesRoutes(registry)),
        MATCH: Mount(MatchRoutes(registry, max_body)),
        IMPORT: Mount(ImportRoutes(registry, max_body)),
    }


def _compat_mounts(parts: SurfaceParts) -> dict[str, Mount]:
    """Surfaces of other registries' APIs."""
    registry, settings = parts.registry, parts.settings
    max_body = min(settings.compat_body, settings.max_body)
    confluent_settings = ConfluentSettings(
        settings.confluent_group, settings.confluent_compatibility, max_body, settings.max_body
    )
    confluent_routes = ConfluentRoutes(registry, parts.callers.authenticator, confluent_settings)
    return {
        CONFLUENT: Mount(
            confluent_routes,
            allows_anonymous=True,
            accepts_documents=True,
            checks_paths=True,
            show_problem=confluent_routes.show_problem,
        ),
        COMPAT: Mount(CompatRoutes(registry, max_body, settings.inbound), accepts_documents=True),
    }
