"""A registry served for Kafka's clients: Confluent's API is at the root of a separate port."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tests.support.polling import until
from tests.support.serving import serving

_ADDRESS: Final = re.compile(r"Confluent's API at (https?://\S+)")


@contextmanager
def serving_confluent(database: str, place: Path, **settings: str) -> Iterator[str]:
    """Serves a registry during the block; yields the address of that port (CSR-101, CSR-102). place: for its log."""
    place.mkdir(exist_ok=True)
    with serving(database, place, ANNALS_CONFLUENT_PORT="0", **settings):
        # The server prints this address after the line that `serving` waits for.
        yield until(lambda: _ADDRESS.search((place / "serve.log").read_text()))[1]
