"""The model and the capabilities in force, cached until the log has newer ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock

from annals.api.registry.capabilities import Capabilities
from annals.api.registry.header_attributes import HeaderCodec
from annals.domain.model import Model, ResourceType, compile_model
from annals.domain.values import xid as xids
from annals.domain.values.json_text import loads
from annals.projections.entities.rows import EntityRow
from annals.projections.entities.view import View


class OutdatedDefinitions(Exception):
    """A request was parsed, or a command built, under definitions that are no longer in force."""


@dataclass(frozen=True, slots=True)
class RegistryDefinitions:
    """positions: of the last events of the model and of the capabilities."""

    positions: tuple[int, int]
    model: Model
    capabilities: Capabilities
    headers: dict[str, HeaderCodec] = field(default_factory=dict)

    def header_codec(self, type: ResourceType) -> HeaderCodec:
        """The codec for a Resource type's attributes in headers; built on first use."""
        return self.headers.get(type.origin) or self.headers.setdefault(type.origin, HeaderCodec(type))

    def require_in_force(self, view: View) -> None:
        """Raises: OutdatedDefinitions if the view has others."""
        if view.definitions() != self.positions:
            raise OutdatedDefinitions


class DefinitionsCache:
    """The latest definitions that this process has read. They may be outdated, because several processes share a store.

    Thread-safe. Definitions of an older view are returned, but not cached.
    """

    def __init__(self, view: View, note_log_end: Callable[[], object]) -> None:
        """note_log_end: makes the process notice if the log loses the definitions, whose positions others would get."""
        self.definitions = read_definitions(view)
        self._note_log_end = note_log_end
        self._note_log_end()
        self._lock = Lock()

    def current(self, view: View) -> RegistryDefinitions:
        """The definitions in force in a view of committed state; cached.

        Costs one small query if nothing has changed.
        """
        current_definitions = self.read_uncached(view)
        if current_definitions is not self.definitions:
            self._note_log_end()
            with self._lock:
                if current_definitions.positions > self.definitions.positions:
                    self.definitions = current_definitions
        return current_definitions

    def read_uncached(self, view: View) -> RegistryDefinitions:
        """The definitions in force in a view; not cached, because an uncommitted write may still be undone."""
        cached = self.definitions
        return cached if view.definitions() == cached.positions else read_definitions(view)


def read_definitions(view: View) -> RegistryDefinitions:
    """The definitions in a view."""
    positions = view.definitions()
    return RegistryDefinitions(
        positions, _model_of_row(view.entity(xids.MODEL)), _capabilities_of_row(view.entity(xids.CAPABILITIES))
    )


def _model_of_row(row: EntityRow | None) -> Model:
    return compile_model({}) if row is None else _load_model(row.attributes, row.private)


# The response to a model change reads the new model first, in a thread. So the event loop, which all requests share,
# later finds it compiled.
@lru_cache(maxsize=4)
def _load_model(attributes: str, private_attributes: str) -> Model:
    stored_model = loads(attributes)
    return Model.load(stored_model["modelsource"], stored_model["model"], loads(private_attributes).get("origins"))


def _capabilities_of_row(row: EntityRow | None) -> Capabilities:
    return Capabilities() if row is None else Capabilities.from_document(loads(row.attributes))
