"""Copies another registry's own attributes and data capabilities to a registry that has not set any.

Only a link to a whole registry does this, and only if it is the only inbound link: a registry that collects from
several others is none of them. Once a client has written them here, they stay. Rules LEG-909, LEG-910.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from annals.domain.decisions import capabilities
from annals.domain.decisions.commands import Command, ReplaceModel, WriteCapabilities, WriteMethod, WriteTree
from annals.domain.model import compile_model
from annals.domain.replication.link import Link
from annals.domain.replication.merged_models import merge_models
from annals.domain.values import xid as xids
from annals.projections.replication.link_conflicts import LinkConflicts
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.standard.comparable import BrokenEntity, ComparableGroup, comparable_registry
from annals.projections.replication.standard.local_registry import LocalRegistry
from annals.projections.replication.standard.model_writer import ModelWriter
from annals.projections.replication.standard.source import StandardSource


class RemoteModel(NamedTuple):
    """The other registry's model.

    model: its modelsource.
    is_new: whether it has changed since it was copied.
    plurals: of its Group types.
    """

    model: Mapping[str, Any]
    is_new: bool
    plurals: Sequence[str]


class RegistryAttributesCopier:
    """Copies the registry entity for one link. Remembers the last attributes of the other registry."""

    def __init__(self, link: Link, context: LinkWorkerContext) -> None:
        self._link = link
        self._context = context
        self._remote_attributes: Mapping[str, Any] | None = None
        self._capabilities: Mapping[str, Any] = {}
        self._model_writer = ModelWriter(link, context)

    def fetch(self, source: StandardSource, conflicts: LinkConflicts) -> None:
        """Fetches the other registry's attributes, and its capabilities if they changed. Raises: RemoteError.

        Capabilities change with the registry's epoch.
        """
        try:
            attributes = source.registry() if self._link.scope.is_whole else None
            if attributes is not None and attributes != self._remote_attributes:
                self._capabilities = source.capabilities()
                self._remote_attributes = attributes
        except BrokenEntity as error:
            conflicts.add(xids.REGISTRY, str(error))

    def copy_capabilities(self, local_registry: LocalRegistry, conflicts: LinkConflicts) -> None:
        """Allows the documents in this registry that the other registry allows, before any of them arrives."""
        current_capabilities = local_registry.capabilities()
        if self._remote_attributes is None or not self._may_copy(
            current_capabilities.link,
            current_capabilities.comparable,
            capabilities.INITIAL,
            capabilities.DATA_CAPABILITIES,
        ):
            return
        conflicts.attempt(xids.CAPABILITIES, lambda: self._write_capabilities(current_capabilities.comparable))

    def _write_capabilities(self, current_capabilities: Mapping[str, Any]) -> None:
        new_capabilities = capabilities.supported_data_capabilities(self._capabilities)
        if capabilities.apply_request(current_capabilities, new_capabilities, patch=True) != current_capabilities:
            self._context.execute(self._link, WriteCapabilities(new_capabilities, WriteMethod.PATCH))

    def copy_model(
        self,
        remote_model: RemoteModel,
        source: StandardSource,
        local_registry: LocalRegistry,
        conflicts: LinkConflicts,
    ) -> bool:
        """Copies the Group types of the other registry, and its own attributes. Whether all types are here then.

        A model that is refused is a conflict: entities that this registry's model allows can still be copied.
        """
        comparable = self._attributes_to_write(remote_model.plurals, local_registry, conflicts)
        if comparable is not None:
            command = self._write_command(comparable, remote_model, local_registry)
            if command is None or conflicts.attempt(
                xids.REGISTRY, lambda: self._model_writer.write(command, source, local_registry)
            ):
                return True
        if remote_model.is_new:
            merged_model = merge_models(local_registry.model.source, remote_model.model, self._link.scope)
            if _differs(merged_model, local_registry, "groups"):
                replace_model = ReplaceModel(merged_model)
                return conflicts.attempt(
                    xids.MODEL, lambda: self._model_writer.write(replace_model, source, local_registry)
                )
        return True

    def _attributes_to_write(
        self, plurals: Sequence[str], local_registry: LocalRegistry, conflicts: LinkConflicts
    ) -> ComparableGroup | None:
        """The attributes to write to this registry; None if none may be or need to be written."""
        if self._remote_attributes is None:
            return None
        try:
            comparable = comparable_registry(self._remote_attributes, plurals)
        except BrokenEntity as error:
            conflicts.add(xids.REGISTRY, str(error))
            return None
        local_entity = local_registry.registry()
        if local_entity.link != self._link.id and (not comparable.attributes or local_registry.has_own_changes()):
            return None
        return (
            comparable
            if self._may_copy(
                local_entity.link, local_entity.comparable.attributes, {}, local_entity.comparable.attributes
            )
            else None
        )

    def _write_command(
        self, comparable: ComparableGroup, remote_model: RemoteModel, local_registry: LocalRegistry
    ) -> Command | None:
        """One write of attributes and model, because an attribute may be required; None if both are equal already."""
        copied_model = (
            remote_model.model if remote_model.is_new else {"attributes": remote_model.model.get("attributes")}
        )
        merged_model = merge_models(local_registry.model.source, copied_model, self._link.scope, attributes=True)
        if _differs(merged_model, local_registry, "groups", "attributes"):
            return WriteTree(xids.REGISTRY, {**comparable.write_body(), "modelsource": merged_model}, WriteMethod.PUT)
        return (
            WriteTree(xids.REGISTRY, comparable.write_body(), WriteMethod.PUT)
            if local_registry.registry().comparable != comparable
            else None
        )

    def _may_copy(
        self, link: str | None, current_values: Mapping[str, Any], initial_values: Mapping[str, Any], names: Any
    ) -> bool:
        """Whether the link already copies this part, or may start to.

        initial_values: values of a registry that was never written.
        """
        if link == self._link.id:
            return True
        inbound_links = [
            inbound_link
            for inbound_link in self._context.readers.quick_view().links.all()
            if inbound_link.is_inbound and not inbound_link.is_promoted
        ]
        is_only_inbound = [inbound_link.id for inbound_link in inbound_links] == [self._link.id]
        return is_only_inbound and all(current_values.get(name) == initial_values.get(name) for name in names)


def _differs(merged_model: Mapping[str, Any], local_registry: LocalRegistry, *parts: str) -> bool:
    """Whether some parts of this registry's model would change if `merged_model` became its modelsource."""
    if merged_model == local_registry.model.source:
        return False
    full_model = compile_model(dict(merged_model)).full
    return any(full_model.get(part) != local_registry.model.full.get(part) for part in parts)
