"""Pages of the sample registry, by the rows of the table of pages."""

from __future__ import annotations

from typing import Final

_READING: Final = "schemagroups/sensors/schemas/reading"
_ODD: Final = "schemagroups/sensors/schemas/odd:name@x~y.z"
#: Paths below `/ui/` for each row of the table, including odd ids, problems and moments of the past.
PATHS: Final = {
    "": ("", "?asof=20"),
    "search": ("search", "search?q=reading", "search?q=temp&versions=all", "search?q=nowhere"),
    "explore/": ("explore/", "explore/?asof=20"),
    "explore/{xid:path}": (
        "explore/schemagroups",
        "explore/schemagroups?filter=((",
        "explore/schemagroups/sensors?asof=20",
        "explore/schemagroups/sensors/schemas?sort=name=desc&limit=2",
        "explore/schemagroups/empty/schemas",
        f"explore/{_READING}",
        f"explore/{_READING}/versions",
        f"explore/{_READING}/versions/2",
        "explore/schemagroups/sensors/schemas/alarm",
        "explore/schemagroups/sensors/schemas/picture",
        f"explore/{_ODD}",
        "explore/messagegroups/sensors/messages/reading",
        "explore/endpoints/telemetry",
        "explore/schemagroups/none",
    ),
    "compare/": ("compare/?leftasof=20", "compare/"),
    "compare/{xid:path}": (
        f"compare/{_READING}",
        f"compare/{_READING}?left=1&right=3&view=inline",
        f"compare/{_READING}?left=1&right=3&of=meaning",
        f"compare/{_READING}?left=3&right=1&of=attributes",
        f"compare/{_READING}/versions/2?leftasof=20",
        "compare/schemagroups/sensors/schemas/picture",
        "compare/schemagroups/sensors/schemas/picture?of=meaning",
        f"compare/{_ODD}?of=meaning",
        "compare/schemagroups/sensors?leftasof=20",
        f"compare/{_READING}?leftasof=someday",
        f"compare/{_READING}?left=9",
    ),
    "new/{xid:path}": ("new/schemagroups", "new/schemagroups/sensors/schemas", f"new/{_READING}/versions"),
    "edit/": ("edit/",),
    "edit/{xid:path}": (f"edit/{_READING}", f"edit/{_ODD}", "edit/endpoints/telemetry"),
    "delete/{xid:path}": ("delete/schemagroups/sensors", f"delete/{_READING}/versions/1"),
    "model": ("model", "model?asof=20"),
    "capabilities": ("capabilities",),
    "restore/": ("restore/?asof=20",),
    "restore/{xid:path}": ("restore/schemagroups/sensors?asof=20", "restore/schemagroups/sensors"),
    "graph/{xid:path}": ("graph/endpoints/telemetry", "graph/endpoints/telemetry?asof=30", "graph/endpoints/none"),
    "subscriptions": ("subscriptions",),
    "subscriptions/new": ("subscriptions/new",),
    # The pages of an existing subscription are in test_delivery_pages.py, because its id is random.
    **{f"subscriptions/{{id}}{path}": (f"subscriptions/none{path}",) for path in ("", "/edit", "/delete")},
    "subscriptions/{id}/discard/{sequence}": ("subscriptions/none/discard/1",),
    "links": ("links",),
    **{f"links/{{id}}{path}": (f"links/none{path}",) for path in ("", "/promote", "/repair")},
    "timeline": (
        "timeline",
        "timeline?asof=20",
        f"timeline?path=/{_READING}",
        "timeline?from=never",
        "timeline?id=none",
    ),
    "interactions/{id}": ("interactions/none",),
    "findings": ("findings", "findings?asof=20", "findings?path=/messagegroups/none", "findings?level=L2&rule=x"),
    "settings": ("settings",),
    "transfer": ("transfer", "transfer?saved=nothing&created=0&updated=2&deleted=0"),
    "confluent": ("confluent", "confluent?context=.none", "confluent?context=a:b", "confluent?asof=5"),
    "transfer/export": ("transfer/export?path=/schemagroups/none",),
    "keys": ("keys",),
    "keys/{id}/rotate": ("keys/none/rotate",),
    "keys/{id}/revoke": ("keys/none/revoke",),
    "grants": ("grants",),
    "grants/{id}/revoke": ("grants/none/revoke",),
}
ALL: Final = [path for paths in PATHS.values() for path in paths]
