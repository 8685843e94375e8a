"""Every file of the product that can open outgoing connections, and who chooses the address.

Rules SUB-901, LEG-1108: addresses that are not chosen by the operator are checked by the guard of sinks.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import chain
from typing import Final

import pytest

from tests.support.source_trees import parse
from tests.test_architecture import ROOT, modules

ROOMS: Final = ("domain", "commands", "projections", "spark_projections", "api")
#: Modules that can connect, and functions of other modules that connect.
MODULES: Final = frozenset(
    ("aiohttp", "boto3", "botocore", "fsspec", "ftplib", "grpc", "http.client", "httpcore", "httpx", "kafka", "nats")
) | {*("paho", "proton", "pyarrow.fs", "requests", "smtplib", "socket", "urllib.request", "urllib3", "websockets")}
FUNCTIONS: Final = frozenset(
    ("connect_tcp", "create_connection", "create_datagram_endpoint", "create_engine", "getaddrinfo", "open_connection")
) | {"open_unix_connection", "sock_connect"}

#: Connects to addresses that a `Resolver` returns, resolved again for each connection.
GUARDED: Final = "guarded"
#: Connects to addresses in settings or arguments of commands. The operator may choose any address.
OPERATOR: Final = "operator"
#: Opens no connections: uses names of errors and types, listens, or uses a connection that another file has opened.
NOWHERE: Final = "nowhere"

SITES: Final = {
    "api/cli/confluent_copies/record_sources.py": NOWHERE,
    "api/cli/device_sign_in.py": OPERATOR,  # `annals auth login --issuer`
    "api/cli/remote_registry.py": OPERATOR,  # `annals log hash --against`
    "api/cli/verbs/auth.py": OPERATOR,  # `annals auth login`
    "api/cli/verbs/publish.py": NOWHERE,
    "api/cli/server.py": NOWHERE,
    "api/cli/worker_processes.py": NOWHERE,
    "commands/store/archive/archive_files.py": OPERATOR,  # `annals log archive --to`
    "commands/store/database/engine.py": OPERATOR,  # ANNALS_DATABASE
    "commands/store/database/store_presence.py": OPERATOR,  # ANNALS_DATABASE
    "commands/store/filesystems.py": OPERATOR,  # the folders of archives and segments
    "projections/confluent_copy/rest_api.py": GUARDED,
    "projections/kafka/cluster.py": GUARDED,  # except for `annals publish --kafka`
    "projections/kafka/producer.py": NOWHERE,
    "projections/kafka/publisher.py": NOWHERE,
    "projections/kafka/topic_position.py": NOWHERE,
    "projections/replication/remote/bounded_responses.py": NOWHERE,
    "projections/replication/remote/content_decoding.py": NOWHERE,
    "projections/replication/remote/guarded_connections.py": GUARDED,
    "projections/replication/compat/client.py": NOWHERE,
    "projections/replication/remote/remote_client.py": GUARDED,
    "projections/replication/standard/cached_responses.py": NOWHERE,
    "projections/replication/standard/response_checks.py": NOWHERE,
    "projections/replication/log/kafka_pull.py": GUARDED,
    "projections/segments/folder.py": OPERATOR,  # `annals segments --folder`
    "projections/outgoing/allow_list.py": NOWHERE,
    "projections/outgoing/dns.py": GUARDED,
    "projections/outgoing/http_client.py": GUARDED,
    "projections/subscriptions/sinks/amqp/messages.py": NOWHERE,
    "projections/subscriptions/sinks/amqp/sender.py": GUARDED,
    "projections/subscriptions/sinks/amqp/connection.py": NOWHERE,
    "projections/subscriptions/transport/connect.py": GUARDED,
    "projections/subscriptions/sinks/kafka/sender.py": NOWHERE,
    "projections/subscriptions/sinks/kafka/producer.py": GUARDED,
    "projections/subscriptions/sinks/kafka/outcomes.py": NOWHERE,
    "projections/subscriptions/sinks/mqtt/connection.py": NOWHERE,
    "projections/subscriptions/sinks/nats/connection.py": NOWHERE,
    "projections/subscriptions/sinks/nats/transport.py": NOWHERE,
    "spark_projections/read_model/load_sqlite.py": OPERATOR,  # `annals rebuild --engine spark --stage`
    "spark_projections/sources/remote_log.py": OPERATOR,  # `annals spark --from`
}
#: The files that create the resolver of a process: a server, or a verb that copies schemas. Only tests use
#: `UncheckedResolver`, which refuses no address.
_MADE: Final = {
    "DestinationGuard": {"api/subscriptions/wiring.py", "api/cli/confluent_copies/connections.py"},
    "UncheckedResolver": set[str](),
}


def test_each_site_is_known() -> None:
    """SUB-901: a new file that can connect must be listed with its guard."""
    assert {site for room in ROOMS for site in _sites(room)} == SITES.keys()


@pytest.mark.parametrize("name", _MADE)
def test_there_is_one_guard(name: str) -> None:
    """SUB-901: files that connect to addresses of others get the guard of the process, and create no resolver."""
    made = {
        str(file.relative_to(ROOT))
        for room in ROOMS
        for file in modules(room)
        for node in ast.walk(parse(file.read_text()))
        if isinstance(node, ast.Call) and _called(node) == name
    }
    assert made == _MADE[name]


def _sites(room: str) -> Iterator[str]:
    for file in modules(room):
        nodes = list(ast.walk(parse(file.read_text())))
        if any(map(_connects, chain.from_iterable(map(_imported, nodes)))) or any(map(_calls, nodes)):
            yield str(file.relative_to(ROOT))


def _imported(node: ast.AST) -> list[str]:
    """The imported names, each with its module."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names]
    return []


def _connects(module: str) -> bool:
    return any(module == name or module.startswith(f"{name}.") for name in MODULES)


def _calls(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and _called(node) in FUNCTIONS


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
