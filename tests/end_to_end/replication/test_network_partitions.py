"""Network partitions between registries: packets are lost silently.

A link notices a partition after 20 seconds without data. Once the line works again it connects within eight seconds:
each attempt sends packets after 0, 1, 3, 7 and 15 seconds, and ends after 20.
`ANNALS_TEST_CUT` sets for how many seconds the line is cut; it has to be more than 20.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.end_to_end.replication.network_namespaces import HERE, Namespace, namespaces
from tests.end_to_end.replication.test_faults import check_replica, follow, writing
from tests.projections.replication.standard.changes import LINK
from tests.support.polling import until
from tests.support.registries.restarted import Registry, registries
from tests.support.registries.standard import (
    check_logs_stop_growing,
    contents,
    use_common_model,
    wait_until_equal_contents,
)

CUT: Final = float(os.environ.get("ANNALS_TEST_CUT", "30"))
#: Seconds after which all registries are equal again: 8 to connect, and four times as many for a busy machine.
EQUAL_SECONDS: Final = 40.0
#: Seconds until the status of a link shows what it has noticed.
_GRACE: Final = 10.0
#: Seconds between two writes of each writer.
_PAUSE: Final = 0.2

#: A registry and one of its links.
Side = tuple[Registry, str]


@pytest.mark.long
@pytest.mark.timeout(CUT + 270)
def test_registries_that_are_cut_off(tmp_path: Path) -> None:
    """LEG-906, LEG-912, LEG-913: in each link mode, all writes during the partition arrive afterwards, each once.

    A primary has three replicas and a peer. Clients write to the primary and the peer, which copy from each other.
    """
    with namespaces(4) as apart, _served(tmp_path, apart) as found:
        primary, peer, *replicas = found
        pulled, notified, pushed = replicas
        use_common_model(primary, peer)
        primary.link("peer", peer.url, **LINK)
        peer.link("peer", primary.url, **LINK)
        for replica, mode in ((pulled, "pull"), (notified, "events"), (pushed, "push")):
            follow(primary, replica, mode)
        ends = [(primary, "peer"), (peer, "peer"), (pulled, "log"), (notified, "log"), (primary, "log")]
        with (
            writing(primary, partial(_version, "one"), _PAUSE) as ones,
            writing(peer, partial(_version, "other"), _PAUSE) as others,
        ):
            until(lambda: ones and others)
            _wait_for_versions(found, {ones[0], others[0]})
            with _cut(apart):
                until(lambda: all(_is(end, "failing") for end in ends), _GRACE)
                one, other = ones[-1], others[-1]
                assert not any(_has(registry, one) for registry in found if registry is not primary)
                assert not any(_has(registry, other) for registry in found if registry is not peer)
            _wait_for_versions(found, {one, other})
        wait_until_equal_contents(primary, peer)
        assert _versions(peer) == {*ones, *others}
        position = primary.head()["position"]
        check_logs_stop_growing(peer)
        for replica in replicas:
            check_replica(primary, replica, primary.ids(), EQUAL_SECONDS)
        until(lambda: all(_is(end, "active") for end in ends))
        assert primary.head()["position"] == position  # although it has read the peer many times since


@contextmanager
def _cut(apart: Sequence[Namespace]) -> Iterator[None]:
    """Cuts namespaces off, waits for `CUT` seconds, and reconnects them after the block."""
    for namespace in apart:
        namespace.cut()
    time.sleep(CUT)
    yield
    for namespace in apart:
        namespace.mend()


def _is(end: Side, state: str) -> bool:
    registry, link = end
    return bool(registry.status(link)["state"] == state)


def _has(registry: Registry, version: str) -> bool:
    return registry.request("GET", version).is_success


def _wait_for_versions(registries: Sequence[Registry], versions: Set[str]) -> None:
    """Returns once all registries have these Versions."""
    until(lambda: all(_has(registry, version) for registry in registries for version in versions), EQUAL_SECONDS)


def _versions(registry: Registry) -> set[str]:
    """The xids of all Versions."""
    return {xid for xid in contents(registry) if "/versions/" in xid}


def _version(group: str, registry: Registry, number: int) -> str:
    """Creates a Version of one of 25 notes; returns its xid."""
    xid = f"/dirs/{group}/notes/n{number % 25}/versions/{number}"
    registry.done("PUT", xid, {"name": f"{number}"})
    return xid


@contextmanager
def _served(home: Path, apart: Sequence[Namespace]) -> Iterator[list[Registry]]:
    """A registry in the namespace of the tests, and one in each other namespace."""
    places = {"primary": HERE} | {f"other{number}": each.place for number, each in enumerate(apart)}
    with registries(home, *places, places=places) as found:
        yield found
