"""The composition root: settings in, a running registry out."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Final

from starlette.applications import Starlette

from api.callers import Everybody, Gate, Tokens, fixed_tokens
from api.compat.description import DESCRIPTIONS, Descriptions
from api.compat.mounts import Mounts
from api.cors import Cors
from api.feeds.delivery import Feeds
from api.feeds.following import Following
from api.front import Front, Manners, Place
from api.hosts import Hosts
from api.jwt import Claims, IssuedTokens, Keys
from api.jwt_keys import is_url
from api.links.canonical import Copies
from api.links.metrics import follow as measure_links
from api.links.parts import Parts as LinkParts
from api.links.wiring import Idle, Running, tools_of
from api.links.wiring import service_of as replication_of
from api.metrics import Metrics
from api.observers import Observers
from api.proxies import Proxies
from api.routes import discovery
from api.routes.check import CHECK, Check
from api.routes.compat import COMPAT, Compat
from api.routes.diff import DIFF, Diff
from api.routes.docs import DOCS, OPENAPI, Described
from api.routes.documents import DOCUMENTS, Documents
from api.routes.events import EVENTS, EventFeed
from api.routes.findings import FINDINGS, Findings
from api.routes.hash import HASH, Hash
from api.routes.health import LIVEZ, READYZ, Health
from api.routes.history import HISTORY, History
from api.routes.imports import IMPORT, Imports
from api.routes.interactions import INTERACTIONS, Interactions
from api.routes.links import LINKS, Links
from api.routes.log import LOG, LogFeed
from api.routes.match import MATCH, Matching
from api.routes.metrics import METRICS, Measured
from api.routes.previews import PREVIEWS, Previews
from api.routes.resolved import RESOLVED, Resolved
from api.routes.restore import RESTORE, Restore
from api.routes.shortself import Shortened
from api.routes.subscriptions import SUBSCRIPTIONS, Subscriptions
from api.routes.xregistry import XRegistry
from api.settings import Settings
from api.shortself import SHORT
from api.subscriptions.advertising import advertise
from api.subscriptions.delivering import service_of
from api.subscriptions.ports import Deliveries
from api.subscriptions.wiring import families_of, guard_to, parts_of
from api.wiring import Registry, open_registry
from commands.address import UNCONFIGURED
from commands.appending import NewSalt
from commands.clock import Clock
from commands.correlation import NewId
from domain.roles import Caller
from projections.families import Family
from projections.replication.states import States
from projections.subscriptions.contract import Resolver

_LOG: Final = logging.getLogger("annals")

#: Names below `/-/` that are answered, and those of them that the root has as well while the model leaves them free.
OWN: Final = frozenset(
    (LIVEZ, READYZ, METRICS, OPENAPI, DOCS, SHORT, EVENTS, LOG, DOCUMENTS, HISTORY, INTERACTIONS, DIFF, RESTORE)
) | {RESOLVED, MATCH, CHECK, FINDINGS, PREVIEWS, DESCRIPTIONS, HASH, LINKS}
ALIASES: Final = frozenset((LIVEZ, READYZ, METRICS, OPENAPI))


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
) -> Starlette:
    """The ASGI application of one registry; its lifespan opens and closes the store.

    caller: who asks, where that needs no token. `state.stop_following` of the application ends what would go on for as
    long as a reader stays: for a server to call before it waits for its connections. `state.stop_checking`, which is
    there while the store is open, abandons checks of documents. `state.refuse` answers a request that a server refuses
    before it is complete. resolver: looks up where sinks are, in the place of the
    guard. deliveries: what is known of them. delivers: whether this process sends events to the sinks of subscriptions.
    address: where the server listens.
    Raises: ValueError for tokens that cannot be read.
    """
    gate = Everybody(caller) if caller else Gate(*_tokens(settings))
    metrics, following = Metrics(OWN), Following()
    observers = Observers(metrics, following)
    hosts = Hosts(None if caller else settings.own_hosts)
    proxies, cors = Proxies(settings.trusted_proxies), Cors(settings.cors_origins)
    manners = Manners(settings.public_url, proxies, gate, cors, metrics, hosts)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        registry = open_registry(
            settings, clock=clock, new_id=new_id, new_salt=new_salt, observer=observers, address=address
        )
        app.state.stop_checking = registry.checker.stop
        feeds = Feeds(registry, following)
        metrics.follow(lambda: (registry.store.tip().position, registry.readers.quick().position()))
        copies = Copies(registry.readers)
        xregistry = XRegistry(registry, settings.max_body, settings.pagelimit, settings.max_inlined, copies)
        found = Place(discovery.Discovery(settings.other_registries), open=True)
        fixed = dict.fromkeys(discovery.PATHS, found)
        service = service_of(settings, registry, metrics.registry, resolver) if delivers else None
        known = service.deliveries if service else deliveries
        parts = parts_of(settings, registry, resolver=resolver, deliveries=known)
        if settings.subscriptions_endpoint:
            advertise(registry, settings.subscriptions_endpoint, registry.store.public_url or UNCONFIGURED)
        families = families_of(settings)
        states = States(settings.database)
        replicating = replication_of(settings, registry, states) if delivers else None
        tools = tools_of(settings, registry, states)
        replication = Running(states, tools, replicating) if replicating else Idle(states, tools)
        measure_links(metrics.registry, registry.readers, replication)
        own = {
            **_own_places(registry, metrics),
            **_messages(registry, settings.max_body),
            CHECK: Place(Check(registry, settings.max_body), documents=True),
            **_history(registry, feeds, families),
            LOG: Place(LogFeed(feeds, replication.upstream)),
            LINKS: Place(Links(LinkParts(registry, replication, copies.changed), gate), open=True),
            PREVIEWS: Place(Previews(parts, gate, families), open=True),
        }
        most = min(settings.compat_body, settings.max_body)
        compat = Place(Compat(registry, most, settings.inbound), documents=True)
        trees = {SUBSCRIPTIONS: Place(Subscriptions(parts)), COMPAT: compat}
        mounts = Mounts(settings.compat_hosts, xregistry.is_free)
        front = Front(xregistry, own, ALIASES, fixed, manners, trees, mounts.mounted, registry.store.damage)
        app.router.default, app.state.refuse = front, front.refuse
        if service:
            observers.add(service)
            service.start()
        if replicating:
            observers.add(replicating)
            replicating.start()
        try:
            yield
        finally:
            following.stop()
            if replicating:
                await asyncio.to_thread(replicating.stop)
            if service:
                await asyncio.to_thread(service.stop)
            xregistry.close()
            feeds.close()
            registry.close()

    app = Starlette(lifespan=lifespan)
    app.router.redirect_slashes = False
    app.state.stop_following = following.stop
    return app


def _own_places(registry: Registry, metrics: Metrics) -> Mapping[str, Place]:
    """What answers below `/-/` about the server and its documents."""
    health, described = Health(registry), Described(registry)
    return {
        LIVEZ: Place(health, open=True, leaf=True, any_host=True),
        READYZ: Place(health, open=True, leaf=True, any_host=True),
        METRICS: Place(Measured(metrics), leaf=True),
        OPENAPI: Place(described, leaf=True),
        DOCS: Place(described, leaf=True),
        DESCRIPTIONS: Place(Descriptions()),
        SHORT: Place(Shortened(registry)),
    }


def _history(registry: Registry, feeds: Feeds, families: Sequence[Family]) -> Mapping[str, Place]:
    """What answers below `/-/` about what has happened."""
    return {
        EVENTS: Place(EventFeed(feeds, families)),
        DOCUMENTS: Place(Documents(registry, feeds)),
        HISTORY: Place(History(registry)),
        INTERACTIONS: Place(Interactions(registry)),
        DIFF: Place(Diff(registry)),
        HASH: Place(Hash(registry)),
        FINDINGS: Place(Findings(registry)),
        RESTORE: Place(Restore(registry)),
    }


def _messages(registry: Registry, max_body: int) -> Mapping[str, Place]:
    """What answers below `/-/` about messages, and documents about them in other forms."""
    return {
        RESOLVED: Place(Resolved(registry)),
        MATCH: Place(Matching(registry, max_body)),
        IMPORT: Place(Imports(registry, max_body)),
    }


def _tokens(settings: Settings) -> list[Tokens]:
    """The kinds of tokens that name callers; none where everybody is the same."""
    found: list[Tokens] = [fixed_tokens(settings.tokens)] if settings.tokens else []
    if settings.jwt_keys:
        claims = Claims(settings.jwt_issuer, settings.jwt_audience, settings.jwt_role_claim, settings.jwt_groups_claim)
        resolver = guard_to(settings.jwt_keys, settings) if is_url(settings.jwt_keys) else None
        found.append(IssuedTokens(Keys(settings.jwt_keys, resolver), claims))
        for name in ("issuer", "audience"):
            if getattr(claims, name) is None:
                _LOG.warning("ANNALS_JWT_%s is not set: JWTs for others with the same keys are accepted", name.upper())
    return found
