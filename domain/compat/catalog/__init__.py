"""Message definitions of Message Catalog 0.1: their documents, and the equivalent attributes of the registry.

Each format with rules of its own is one module here; METASCHEMAS lists them by the exact name that Groups use for the
format (LEG-304). HTTP and storage do not belong here. Begin with `attributes.py`, then `metaschema.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from annals.domain.compat.catalog import amqp, cloudevents, mqtt, nats
from annals.domain.compat.catalog.metaschema import Metaschema

METASCHEMAS: Final[Mapping[str, Metaschema]] = {
    "CloudEvents": cloudevents,
    "AMQP": amqp,
    "MQTT": mqtt,
    "NATS": nats,
}
