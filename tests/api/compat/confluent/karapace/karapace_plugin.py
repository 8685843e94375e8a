"""Loaded by pytest into Karapace's own tests: each test gets a registry without schemas, and none waits for Kafka.

The tests that run here send HTTP requests and nothing else. What their modules import for Karapace's own server, a
library in Go and a connection to Kafka, is not used; this file has their places. Nothing here stands for a part of the
registry.
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
    """In place of waiting for Karapace's own path `/master_available`."""


def _no_kafka(*_: object) -> None:
    """In place of waiting for Kafka."""


@pytest.hookimpl(trylast=True)
def pytest_plugin_registered(plugin: object) -> None:
    """Replaces, in the module of the fixtures, what waits for other servers."""
    for name, replacement in (("repeat_until_master_is_available", _ready), ("wait_for_kafka", _no_kafka)):
        if hasattr(plugin, name):
            setattr(plugin, name, replacement)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Asks the script for the address of a new registry, as Karapace's own run starts one with each test."""
    with urllib.request.urlopen(os.environ["NEW_REGISTRY"]) as answer:
        item.config.option.registry_url = answer.read().decode()
