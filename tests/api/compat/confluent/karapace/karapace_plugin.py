"""A pytest plugin for Karapace's own tests: each test gets a registry without schemas, and no test waits for Kafka.

The selected tests only send HTTP requests. Their modules also import parts of Karapace's own server, a Go library and a
Kafka connection, which they do not use; this file replaces these parts with stubs. It replaces no part of the registry.
"""

import os
import sys
import urllib.request
from types import ModuleType

import pytest

_GO_LIBRARY = "karapace.core.protobuf.protopace.protopace"


class _Unused(ModuleType):
    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


sys.modules.setdefault(_GO_LIBRARY, _Unused(_GO_LIBRARY))


async def _ready(client: object) -> None:
    """Replaces the wait for Karapace's own path `/master_available`."""


def _no_kafka(*_: object) -> None:
    """Replaces the wait for Kafka."""


@pytest.hookimpl(trylast=True)
def pytest_plugin_registered(plugin: object) -> None:
    """Replaces the functions of the fixture module that wait for other servers."""
    for name, replacement in (("repeat_until_master_is_available", _ready), ("wait_for_kafka", _no_kafka)):
        if hasattr(plugin, name):
            setattr(plugin, name, replacement)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Requests the address of a new registry from the script, because each test needs a registry without schemas."""
    with urllib.request.urlopen(os.environ["NEW_REGISTRY"]) as answer:
        item.config.option.registry_url = answer.read().decode()
