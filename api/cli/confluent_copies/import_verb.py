"""`annals import --from-...`: copies schemas of another registry into a store or through a server."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event

from annals.api.cli.confluent_copies.connections import open_other_registry, open_own_server
from annals.api.cli.confluent_copies.copy_options import CopyOptions, ImportRequest
from annals.api.cli.confluent_copies.import_copy import ImportOptions, NamedSource, OpenSource, import_copy
from annals.api.cli.confluent_copies.local_api import open_local_api
from annals.api.cli.confluent_copies.record_sources import dump_source, topic_source
from annals.api.cli.stop_signals import stop_event
from annals.api.settings.settings import Settings
from annals.projections.confluent_copy.rest_api import RestApi
from annals.projections.confluent_copy.rest_reader import RestReader
from annals.projections.confluent_copy.stoppable import StoppableApi


def import_schemas(request: ImportRequest, settings: Settings, copy: CopyOptions, interval: float | None) -> None:
    """Copies the schemas, again and again if there is an interval, in seconds. Raises: UsageError and others."""
    options = ImportOptions(copy.selection(), copy.dry_run, copy.report, interval)
    signals = [signal.SIGINT] if interval is None else [signal.SIGINT, signal.SIGTERM]
    with (
        stop_event(signals) as stop,
        _open_source(request, settings, copy, stop) as source,
        _open_target(request.server, settings, copy, stop) as target,
    ):
        import_copy(source, target, options, stop)


@contextmanager
def _open_source(request: ImportRequest, settings: Settings, copy: CopyOptions, stop: Event) -> Iterator[OpenSource]:
    """The registry, topic or dump of the options. Raises: UsageError."""
    if request.topic is not None and request.brokers is not None:
        yield topic_source(request.topic, request.brokers)
    elif request.dump is not None:
        yield dump_source(request.dump)
    elif request.url is not None:
        with open_other_registry(request.url, copy, settings) as other:
            api = StoppableApi(other, stop)
            yield lambda: NamedSource(other.url, RestReader(api))


@contextmanager
def _open_target(server: str | None, settings: Settings, copy: CopyOptions, stop: Event) -> Iterator[RestApi]:
    """The served registry, or the one of a store."""
    if server is not None:
        with open_own_server(server, copy, settings) as api:
            yield StoppableApi(api, stop)
        return
    with open_local_api(settings) as local_api:
        yield local_api
