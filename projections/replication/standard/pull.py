"""Copies from a server of the standard API: reads it and turns differences into commands (LEG-910, LEG-913)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

from annals.domain.model import compile_model
from annals.domain.replication.link import Link
from annals.domain.values import xid as xids
from annals.projections.replication.link_conflicts import XID, LinkConflicts
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.standard.entity_copier import EntityCopier
from annals.projections.replication.standard.local_registry import LocalRegistry
from annals.projections.replication.standard.registry_attributes import RegistryAttributesCopier, RemoteModel
from annals.projections.replication.standard.source import StandardSource


class StandardPull:
    """Runs a link that copies from a server of the standard API at intervals."""

    def __init__(self, link: Link, context: LinkWorkerContext) -> None:
        self._link = link
        self._context = context
        self._unequal_hashes: dict[str, tuple[bytes, bytes]] = {}
        self._registry_copier = RegistryAttributesCopier(link, context)
        self._model: Mapping[str, Any] | None = None
        self._plurals: Sequence[str] = ()

    def run(self) -> None:
        """See `LinkWorker`."""
        with closing(self._context.connect(self._link)) as remote:
            source = StandardSource(remote)
            while not self._context.stopping.is_set():
                self.copy_once(source)
                self._context.stopping.wait(self._link.interval)

    def copy_once(self, source: StandardSource) -> None:
        """Copies everything in scope once. Raises: RemoteError, BrokenEntity, Problem."""
        conflicts = LinkConflicts(self._link.id, self._context.states, XID)
        conflicts.clear()
        self._copy_definitions(source, conflicts)
        source.begin_pass()
        copier = EntityCopier(self._link, self._context, source, self._unequal_hashes, conflicts)
        for root in _scope_roots(self._link):
            if root != xids.REGISTRY and xids.segments(root)[0] not in source.types:
                conflicts.add(root, "the other registry has no Groups of this type")
                copier.remove_missing(root)
                continue
            groups = source.groups(root)
            if groups is None:
                continue
            for listed_group in groups:
                if self._link.scope.reaches_into(listed_group.xid.lower()):
                    copier.copy_group(listed_group)
                if self._context.stopping.is_set():
                    return
            copier.remove_missing(root)
        source.responses.remember_tags()
        if conflicts:
            source.responses.forget_tags()  # the cause of a conflict may disappear, and then its entity must be copied
        conflicts.save(0)

    def _copy_definitions(self, source: StandardSource, conflicts: LinkConflicts) -> None:
        """Copies the definitions of the link's Group types each time they change in the other registry.

        Local changes of the model in between stay until then. Otherwise two registries that copy from each other would
        exchange their models forever.
        """
        changed_model = source.modelsource()
        is_new = changed_model is not None and changed_model != self._model
        model = changed_model if changed_model is not None else self._model or {}
        if is_new:
            self._plurals = list(compile_model(dict(model)).groups)
        self._registry_copier.fetch(source, conflicts)
        self._registry_copier.copy_capabilities(self._local_registry(), conflicts)
        remote_model = RemoteModel(model, is_new, self._plurals)
        if self._registry_copier.copy_model(remote_model, source, self._local_registry(), conflicts):
            self._model = model
        source.model = self._local_registry().model
        source.types = [
            plural
            for plural in self._plurals
            if self._link.scope.may_have_groups_of(plural) and plural in source.model.groups
        ]

    def _local_registry(self) -> LocalRegistry:
        return LocalRegistry(self._context.readers.quick_view())


def _scope_roots(link: Link) -> list[str]:
    """The roots to read: the whole registry, or the Groups that a scope names, directly or through Resources."""
    scope = link.attributes["scope"]
    if link.scope.is_whole or scope.get("filters"):
        return [xids.REGISTRY]
    groups = (*scope.get("groups", ()), *(xids.join(*xids.segments(xid)[:2]) for xid in scope.get("resources", ())))
    return list(dict.fromkeys(groups))
