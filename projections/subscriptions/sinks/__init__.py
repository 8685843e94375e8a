"""The sinks, one folder per protocol.

The module `sink` of each folder registers its factory in `contract.SINKS` when imported. What sinks promise is in
`contract.py` of the folder above.
Begin with `http/sink.py`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from annals.projections.subscriptions.contract import SINKS, OpenSink

_LOG: Final = logging.getLogger("annals.subscriptions")


@cache
def load_sinks() -> Mapping[str, OpenSink]:
    """Sink factories by protocol, loaded on first use because client libraries are slow to import.

    A protocol whose client is not installed, or fails to load, is missing.
    """
    for module in iter_modules(__path__, f"{__name__}."):
        if not module.ispkg:
            continue
        try:
            import_module(f"{module.name}.sink")
        except ImportError:
            continue  # the client library is not installed
        except Exception:
            _LOG.warning(
                "the sink %s is not available: its client may be of another version", module.name, exc_info=True
            )
    return SINKS
