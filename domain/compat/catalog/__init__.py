"""Definitions of messages in Message Catalog 0.1: their documents, and the registry's attributes that say the same.

A format with rules of its own is a module of this package, and METASCHEMAS has it by the name that Groups give it, in
exactly that spelling (LEG-304).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from domain.compat.catalog import amqp, cloudevents, mqtt, nats
from domain.compat.catalog.metaschema import Metaschema

METASCHEMAS: Final[Mapping[str, Metaschema]] = {
    "CloudEvents": cloudevents,
    "AMQP": amqp,
    "MQTT": mqtt,
    "NATS": nats,
}
