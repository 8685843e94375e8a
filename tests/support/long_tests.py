"""Parametrized tests that check nearly the same each time: `make test` runs some of them, `make test-long` the others.

`make test` runs on both databases the tests of the store, the read model, and its queries, such as filters, sort and
pages.
"""

from __future__ import annotations

from typing import Final

import pytest

#: The beginning of test ids, and the parameter with which these tests are long.
_LONG_PARAMETERS: Final = (
    # Their requests use the same few SQL statements. A row whose response depends on a query has a marker.
    ("tests/spec/test_", "postgresql"),
    ("tests/spec/properties/test_hidden_histories.py", "postgresql"),
    ("tests/api/messaging/", "postgresql"),
    ("tests/api/compat/confluent/", "postgresql"),
    ("tests/api/access/", "postgresql"),
    ("tests/api/ui/", "postgresql"),
    ("tests/api/openapi/", "postgresql"),
    ("tests/api/auth/", "postgresql"),
    ("tests/api/subscriptions/", "postgresql"),
    ("tests/api/replication/", "postgresql"),
    # Each starts processes. In production, processes share PostgreSQL.
    ("tests/api/cli/", "sqlite"),
    ("tests/api/http/", "sqlite"),
    ("tests/bench/", "sqlite"),
    ("tests/end_to_end/", "sqlite"),
    ("tests/projections/replication/", "sqlite"),
    ("tests/projections/kafka/", "sqlite"),
    # A second variant of the same kind.
    ("tests/projections/replication/compat/", "messages"),
    ("tests/projections/replication/standard/", "ours"),
    ("tests/projections/subscriptions/sinks/http/test_foreign.py", "go"),
    ("tests/end_to_end/test_compat_events.py::test_each_family_is_delivered_to_brokers", "KAFKA"),
    ("tests/spark_projections/test_events.py::", "messagecatalog"),
    ("tests/spark_projections/test_publications.py::", "sqlite"),
    *(
        ("tests/spark_projections/test_upcasting.py::", table)
        for table in (
            *("interactions", "entities", "entities_history", "deprecations", "xregistry_events", "changes"),
            "versions",
        )
    ),
)
#: The marker of tests that `make test` runs on each database, wherever they are.
_BOTH: Final = "both_databases"


def mark_long(items: list[pytest.Item]) -> None:
    """Marks the tests that are long because of their parameter."""
    for item in items:
        if callspec := getattr(item, "callspec", None):
            values = {
                *callspec.id.split("-"),
                *filter(None, (v for v in callspec.params.values() if isinstance(v, str))),
            }
            for start, value in _LONG_PARAMETERS:
                if value in values and item.nodeid.startswith(start) and not item.get_closest_marker(_BOTH):
                    item.add_marker("long")
