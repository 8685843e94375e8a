"""Announces the registry's subscriptions as an endpoint in the registry, if a setting asks for it (SUB-108)."""

from __future__ import annotations

import logging
from typing import Any, Final

from annals.api.registry.open_registry import Registry
from annals.api.subscriptions.config import subscription_config_types
from annals.domain.access.roles import CONSOLE, Caller
from annals.domain.decisions.commands import WriteMethod, WriteTree
from annals.domain.errors.problems import Problem
from annals.domain.values.json_text import loads

ENDPOINTS: Final = "endpoints"
_LOG: Final = logging.getLogger("annals.subscriptions")
#: The caller that the log shows for this write.
_SERVER_CALLER: Final = Caller("annals", CONSOLE.role)


def write_endpoint(registry: Registry, id: str, base_url: str) -> bool:
    """True if the endpoint was written, as one interaction; False if it was up to date or could not be written.

    base_url: root of the registry. A model without endpoints needs no write. If the registry refuses the endpoint, the
    server logs a warning and still starts.
    """
    view = registry.readers.quick_view()
    model = view.entity("/model")
    if model is None or ENDPOINTS not in loads(model.attributes)["model"].get("groups", {}):
        return False
    xid, attributes = f"/{ENDPOINTS}/{id}", _endpoint_attributes(base_url)
    row = view.entity(xid)
    stored_attributes = loads(row.attributes) if row else {}
    if all(stored_attributes.get(name) == value for name, value in attributes.items()):
        return False
    method = WriteMethod.PATCH if row else WriteMethod.PUT
    try:
        registry.command_bus.submit(
            WriteTree(xid, attributes, method, ignore=frozenset({"epoch"})), _SERVER_CALLER
        ).result()
    except Problem as problem:
        _LOG.warning("the endpoint %s, which makes the subscriptions known, cannot be written: %s", xid, problem)
        return False
    return True


def _endpoint_attributes(base_url: str) -> dict[str, Any]:
    return {
        "name": "Subscriptions",
        "description": "Subscriptions to what happens in this registry",
        "usage": ["subscriber"],
        "envelope": "CloudEvents/1.0",
        "protocol": "HTTP/1.1",
        "protocoloptions": {"endpoints": [{"uri": f"{base_url}/subscriptions"}], "deployed": True},
        "subscriptionconfig": subscription_config_types(),
    }
