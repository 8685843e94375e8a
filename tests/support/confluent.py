"""A registry served for Kafka's clients: a port of its own has Confluent's API at its root."""

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
    """The address of the port (CSR-101, CSR-102), as long as the block lasts. What the server says is in `place`."""
    place.mkdir(exist_ok=True)
    with serving(database, place, ANNALS_CONFLUENT_PORT="0", **settings):
        # The line with this address follows the one that `serving` waits for.
        yield until(lambda: _ADDRESS.search((place / "serve.log").read_text()))[1]
