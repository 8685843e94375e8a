"""Sinks, one protocol per folder; the module `sink` of each registers itself in `contract.SINKS` when imported."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Final

from projections.subscriptions.contract import SINKS, OpenSink

_LOG: Final = logging.getLogger("annals.subscriptions")


@cache
def load_sinks() -> Mapping[str, OpenSink]:
    """How to open sinks, by protocol; looked up when first asked for, as clients take time to load.

    One whose client is not installed, or fails to load, is not there.
    """
    for module in iter_modules(__path__, f"{__name__}."):
        if not module.ispkg:
            continue
        try:
            import_module(f"{module.name}.sink")
        except ImportError:
            continue  # its client is not installed
        except Exception:
            _LOG.warning("the sink %s is not there: its client may be of another version", module.name, exc_info=True)
    return SINKS
