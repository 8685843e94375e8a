"""docs/reference/metrics.md: the metrics of `/-/metrics`, from those that a running registry has registered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from annals.api.server.dispatch import Dispatcher
from docs.generate.application import RunningRegistry, running_registry
from docs.generate.markdown import code, page, table

_INTRODUCTION: Final = """\
`GET /-/metrics` returns these in the text format of Prometheus, with the metrics of the process (`process_…`) of
Prometheus' own client. Each process has its own. With tokens, the path requires the role `reader`.

The label `route` is a kind of path, such as `group`. Below `/-/` it has the first name, and below `/compat` it is the
template of the path, such as `/compat/confluent/subjects/{subject}/versions`.

A counter has the suffix `_total`. A histogram has `_bucket`, `_sum` and `_count`."""
#: Metrics of Prometheus' client itself, which differ between systems.
_PROCESS_PREFIX: Final = "process_"


def text() -> str:
    """The whole page."""
    with running_registry(delivers=True) as registry:
        rows = [*_rows(registry)]
    return page("Metrics", _INTRODUCTION, table(("Metric", "Kind", "Labels", "Meaning"), rows))


def _rows(registry: RunningRegistry) -> Iterator[tuple[str, str, str, str]]:
    dispatcher = registry.app.router.default
    assert isinstance(dispatcher, Dispatcher)
    # The client of Prometheus shows labels only with values, and a new registry has few of these.
    collectors: Any = dispatcher._config.metrics.registry._collector_to_names
    for collector in collectors:
        for family in collector.collect():
            if not family.name.startswith(_PROCESS_PREFIX):
                labels: Sequence[str] = getattr(collector, "_labelnames", ()) or getattr(family, "_labelnames", ())
                yield code(family.name), family.type, ", ".join(map(code, labels)), family.documentation
