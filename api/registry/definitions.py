"""The model and the capabilities that a request is read under, kept as long as the log has no newer ones."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from threading import Lock

from api.registry.capabilities import Capabilities
from api.registry.header_attributes import HeaderCodec
from domain.model import Model, ResourceType, compile_model
from domain.values import xid as xids
from domain.values.json_text import loads
from projections.entities.query import View
from projections.entities.rows import EntityRow


@dataclass(frozen=True, slots=True)
class RegistryDefinitions:
    """positions: of the last events of the model and of the capabilities."""

    positions: tuple[int, int]
    model: Model
    capabilities: Capabilities
    headers: dict[str, HeaderCodec] = field(default_factory=dict)

    def headers_of(self, type: ResourceType) -> HeaderCodec:
        """How a Resource type's attributes travel in headers; made when first asked for."""
        return self.headers.get(type.origin) or self.headers.setdefault(type.origin, HeaderCodec(type))


class DefinitionsCache:
    """The latest definitions that this process has read, perhaps outdated: several processes may share a store.

    Any thread may ask. What an older view holds is given to its asker, and not remembered.
    """

    def __init__(self, view: View) -> None:
        self.definitions = read_definitions(view)
        self._lock = Lock()

    def current(self, view: View) -> RegistryDefinitions:
        """Those in force in a view of committed state; remembered. One small query where nothing has changed."""
        found = self.within(view)
        if found is not self.definitions:
            with self._lock:
                if found.positions > self.definitions.positions:
                    self.definitions = found
        return found

    def within(self, view: View) -> RegistryDefinitions:
        """Those in force in a view; not remembered, because a write that shows them may still be undone."""
        known = self.definitions
        return known if view.definitions() == known.positions else read_definitions(view)


def read_definitions(view: View) -> RegistryDefinitions:
    """The definitions that a view holds."""
    positions = view.definitions()
    return RegistryDefinitions(
        positions, _model(view.entity(xids.MODEL)), _capabilities(view.entity(xids.CAPABILITIES))
    )


def _model(row: EntityRow | None) -> Model:
    return compile_model({}) if row is None else _loaded(row.attributes, row.private)


# A new model is first read by the answer to its own write, in a thread: the event loop, which all requests share, then
# finds it built.
@lru_cache(maxsize=4)
def _loaded(attributes: str, private: str) -> Model:
    stored = loads(attributes)
    return Model.load(stored["modelsource"], stored["model"], loads(private).get("origins"))


def _capabilities(row: EntityRow | None) -> Capabilities:
    return Capabilities() if row is None else Capabilities.of(loads(row.attributes))
