"""Copying from a server of the standard API: looks at it, and what differs becomes commands here (LEG-910, LEG-913)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from domain.model import compile_model
from domain.replication.link import Link
from domain.values import xid as xids
from projections.replication.link_worker import LinkWorkerContext
from projections.replication.standard.conflicts import Conflicts
from projections.replication.standard.entity_copier import EntityCopier
from projections.replication.standard.local_registry import LocalRegistry
from projections.replication.standard.registry_attributes import RegistryAttributesCopier, RemoteModel
from projections.replication.standard.source import StandardSource


class StandardPull:
    """See the module."""

    def __init__(self, link: Link, tools: LinkWorkerContext) -> None:
        self._link = link
        self._tools = tools
        self._tried: dict[str, tuple[bytes, bytes]] = {}
        self._registry = RegistryAttributesCopier(link, tools)
        self._model: Mapping[str, Any] | None = None
        self._plurals: Sequence[str] = ()

    def run(self) -> None:
        """See `Runner`."""
        with closing(self._tools.remote(self._link)) as remote:
            source = StandardSource(remote)
            while not self._tools.stopping.is_set():
                self.look(source)
                self._tools.stopping.wait(self._link.interval)

    def look(self, source: StandardSource) -> None:
        """Has this registry hold what the other one has in scope. Raises: RemoteError, BrokenEntity, Problem."""
        conflicts = Conflicts()
        self._define(source, conflicts)
        source.look()
        copies = EntityCopier(self._link, self._tools, source, self._tried, conflicts)
        for root in _scope_roots(self._link):
            if root != xids.REGISTRY and xids.segments(root)[0] not in source.types:
                conflicts.add(root, "the other registry has no Groups of this type")
                continue
            groups = source.groups(root)
            if groups is None:
                continue
            for listed in groups:
                if self._link.scope.shows(listed.xid.lower()):
                    copies.take(listed)
                if self._tools.stopping.is_set():
                    return
            copies.end(root)
        source.answers.keep()
        if conflicts:
            source.answers.forget()  # what stands against something here may go, and then it is to be taken
        told = conflicts.told()
        self._tools.states.note(self._link.id, 0, lastcontact=time.time(), error=None, conflicts=told)

    def _define(self, source: StandardSource, conflicts: Conflicts) -> None:
        """Has the model say of the link's Groups what the other one says, as often as that changes.

        What somebody changes here meanwhile stays until then: two registries that copy from each other would otherwise
        exchange their models for ever.
        """
        found = source.modelsource()
        new = found is not None and found != self._model
        model = found if found is not None else self._model or {}
        if new:
            self._plurals = list(compile_model(dict(model)).groups)
        self._registry.ask(source, conflicts)
        self._registry.admit(self._here(), conflicts)
        self._registry.define(RemoteModel(model, new, self._plurals), self._here(), conflicts)
        self._model = model
        source.model = self._here().model
        source.types = [plural for plural in self._plurals if self._link.scope.of_type(plural)]

    def _here(self) -> LocalRegistry:
        return LocalRegistry(self._tools.readers.quick())


def _scope_roots(link: Link) -> list[str]:
    """What is looked at as one: the whole registry, or the Groups that a scope names or names something of."""
    scope = link.attributes["scope"]
    if link.scope.whole or scope.get("filters"):
        return [xids.REGISTRY]
    named = (*scope.get("groups", ()), *(xids.join(*xids.segments(xid)[:2]) for xid in scope.get("resources", ())))
    return list(dict.fromkeys(named))
