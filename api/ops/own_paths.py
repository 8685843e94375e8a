"""The paths that do not depend on the model, and the OpenAPI of those below `/-/`, discovery, and subscriptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from annals.api.access.denial_routes import MAX_LIMIT as DENIAL_LIMIT
from annals.api.audit.request_params import MAX_LIMIT as AUDIT_LIMIT
from annals.api.audit.request_params import MAX_XIDS
from annals.api.audit.tree_hash_params import MAX_PARTS
from annals.api.compat.confluent.routes import PATH_TEMPLATES as CONFLUENT_TEMPLATES
from annals.api.compat.confluent.subjects_route import MAX_LIMIT as SUBJECT_LIMIT
from annals.api.compat.descriptions import DESCRIPTIONS
from annals.api.feeds.formats import PAGE_SIZE
from annals.api.feeds.request_params import MAX_LIMIT, MAX_WAIT
from annals.api.http import id_pages
from annals.api.messaging.references.request_params import MAX_DEPTH
from annals.api.openapi.named_schemas import NamedSchemas
from annals.api.openapi.path_files import load_paths
from annals.api.openapi.path_index import IndexEntry, methods_of
from annals.api.replication.representations import LINK_STATES
from annals.api.settings.shown_settings import SOURCES
from annals.api.subscriptions import attempts, dead_letters, previews, reading
from annals.api.xregistry.imports import IMPORT_DIALECTS
from annals.api.xregistry.request.paths import FIXED_PATHS
from annals.api.xregistry.search import request_params as search_params
from annals.api.xregistry.search.routes import MAX_MATCHES as SEARCH_MATCHES
from annals.domain.compat.legacy_apis import LEGACY_APIS
from annals.domain.formats import COMPATIBILITIES
from annals.domain.messaging.resolve import UnresolvedReason
from annals.domain.replication.link import MODES
from annals.domain.search import query as search_query
from annals.domain.search.texts import TextPlace
from annals.domain.subscriptions import filters
from annals.domain.subscriptions.event_families import FAMILIES, XREGISTRY
from annals.domain.subscriptions.sink_uris import PROTOCOLS
from annals.projections.references.reference import ReferenceState
from annals.projections.replication.log.link_status import DIFFERS, EQUAL, UNKNOWN
from annals.projections.search.search import MAX_COUNT
from annals.projections.subscriptions.state.tables import OUTCOMES

#: Where clients of other registries' APIs begin. These have OpenAPI documents of their own.
OTHER_SURFACES: Final = (
    *(
        IndexEntry(
            f"{family.base}/{family.path}",
            methods_of(described["paths"][f"/{family.path}"]),
            f"{described['info']['title']} {described['info']['version']}, a legacy API: list the ids of all groups",
        )
        for family, described in ((family, DESCRIPTIONS[family.name]) for family in LEGACY_APIS)
    ),
    IndexEntry("/compat/confluent/subjects", ("GET",), "Confluent Schema Registry's API: list the subjects"),
    IndexEntry("/ui/", ("GET",), "Pages for people in browsers"),
)
#: The folders with an `openapi.yaml`, in the order of the document.
_SURFACES: Final = (
    *(
        "annals.api.feeds",
        "annals.api.audit",
        "annals.api.xregistry",
        "annals.api.replication",
        "annals.api.access",
        "annals.api.messaging",
        "annals.api.messaging.references",
        "annals.api.xregistry.search",
        "annals.api.xregistry.checks",
        "annals.api.xregistry.compare",
    ),
    *("annals.api.ops", "annals.api.subscriptions"),
)
#: The values of the placeholders in these files.
_VALUES: Final[Mapping[str, Any]] = {
    "ATTEMPT_LIMIT": attempts.MAX_LIMIT,
    "ATTEMPT_OUTCOMES": list(OUTCOMES),
    "AUDIT_LIMIT": AUDIT_LIMIT,
    "AUDIT_XIDS": MAX_XIDS,
    "COMPATIBILITIES": [*COMPATIBILITIES, None],
    "DEAD_LETTER_LIMIT": dead_letters.MAX_LIMIT,
    "DEFAULT_EVENT_FAMILY": XREGISTRY,
    "DENIAL_LIMIT": DENIAL_LIMIT,
    "EVENT_FAMILIES": list(FAMILIES),
    "FEED_LIMIT": MAX_LIMIT,
    "FEED_MAX_WAIT": MAX_WAIT,
    "FEED_PAGE_SIZE": PAGE_SIZE,
    "FILTER_DIALECTS": {name: {} for name in filters.DIALECTS},
    "HASH_CUTS": MAX_PARTS - 1,
    "HASH_PARTS": MAX_PARTS,
    "ID_PAGE_LIMIT": id_pages.MAX_LIMIT,
    "IMPORT_DIALECTS": list(IMPORT_DIALECTS),
    "LEGACY_APIS": [*(family.name for family in LEGACY_APIS), "confluent"],
    "LINK_DIALECTS": list(MODES),
    "LINK_MODES": list(dict.fromkeys(mode for modes in MODES.values() for mode in modes)),
    "LINK_STATES": list(LINK_STATES),
    "LINK_VERDICTS": [EQUAL, DIFFERS, UNKNOWN],
    "PREVIEW_LIMIT": previews.MAX_MATCHES,
    "REFERENCE_DEPTH": MAX_DEPTH,
    "REFERENCE_STATES": [state.value for state in ReferenceState],
    "SEARCH_CHARACTERS": search_query.MAX_CHARACTERS,
    "SEARCH_COUNT": MAX_COUNT,
    "SEARCH_DEFAULT_LIMIT": search_params.DEFAULT_LIMIT,
    "SEARCH_LIMIT": search_params.MAX_LIMIT,
    "SEARCH_MATCHES": SEARCH_MATCHES,
    "SEARCH_PLACES": [place.word for place in TextPlace],
    "SEARCH_WORDS": search_query.MAX_WORDS,
    "SETTING_SOURCES": list(SOURCES),
    "SINK_PROTOCOLS": list(PROTOCOLS),
    "SUBJECT_LIMIT": SUBJECT_LIMIT,
    "SUBSCRIPTION_LIMIT": reading.MAX_LIMIT,
    "UNRESOLVED_REASONS": [reason.value for reason in UnresolvedReason],
}

_LOADED: Final = [load_paths(surface, _VALUES) for surface in _SURFACES]
#: All path items, and the schemas that they refer to.
OWN_PATHS: Final = NamedSchemas(
    {path: item for each in _LOADED for path, item in each.part.items()},
    {name: schema for each in _LOADED for name, schema in each.schemas.items()},
)

#: The templates of all paths that do not depend on the model.
PATH_TEMPLATES: Final = (
    *OWN_PATHS.part,
    *(f"/{name}" for name in FIXED_PATHS),
    *(f"{api.base}{path}" for api in LEGACY_APIS for path in DESCRIPTIONS[api.name]["paths"]),
    *CONFLUENT_TEMPLATES,
)
