"""Copies another registry's own attributes and data capabilities to a registry that has not set any.

Only a link to a whole registry does this, and only if it is the only inbound link: a registry that collects from
several others is none of them. Once a client has written them here, they stay. Rules LEG-909, LEG-910.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from domain.decisions import capabilities
from domain.decisions.commands import Command, ReplaceModel, WriteCapabilities, WriteMethod, WriteTree
from domain.errors.problems import Problem
from domain.model import compile_model
from domain.replication.link import Link
from domain.replication.merged_models import merge_models
from domain.values import xid as xids
from projections.replication.link_worker import LinkWorkerContext
from projections.replication.standard.comparable import BrokenEntity, ComparableGroup, comparable_registry
from projections.replication.standard.conflicts import Conflicts
from projections.replication.standard.local_registry import LocalRegistry
from projections.replication.standard.source import StandardSource


class RemoteModel(NamedTuple):
    """The other registry's model.

    model: its modelsource.
    new: whether it has changed since it was copied.
    plurals: of its Group types.
    """

    model: Mapping[str, Any]
    new: bool
    plurals: Sequence[str]


class RegistryAttributesCopier:
    """Copies the registry entity for one link. Remembers the last attributes of the other registry."""

    def __init__(self, link: Link, tools: LinkWorkerContext) -> None:
        self._link = link
        self._tools = tools
        self._reported: Mapping[str, Any] | None = None
        self._capabilities: Mapping[str, Any] = {}

    def fetch(self, source: StandardSource, conflicts: Conflicts) -> None:
        """Fetches the other registry's attributes, and its capabilities if they changed. Raises: RemoteError.

        Capabilities change with the registry's epoch.
        """
        try:
            said = source.registry() if self._link.scope.whole else None
            if said is not None and said != self._reported:
                self._capabilities = source.capabilities()
                self._reported = said
        except BrokenEntity as error:
            conflicts.add(xids.REGISTRY, str(error))

    def copy_capabilities(self, here: LocalRegistry, conflicts: Conflicts) -> None:
        """Allows the documents in this registry that the other registry allows, before any of them arrives."""
        held = here.capabilities()
        if self._reported is None or not self._may(
            held.link, held.form, capabilities.INITIAL, capabilities.DATA_CAPABILITIES
        ):
            return
        wanted = capabilities.supported_data_capabilities(self._capabilities)
        try:
            if capabilities.apply_request(held.form, wanted, patch=True) != held.form:
                self._tools.execute(self._link, WriteCapabilities(wanted, WriteMethod.PATCH))
        except Problem as problem:
            conflicts.add(xids.CAPABILITIES, problem.text())

    def copy_model(self, given: RemoteModel, here: LocalRegistry, conflicts: Conflicts) -> None:
        """Copies the Group types of the other registry, and its own attributes.

        Raises: Problem if the model is refused.
        """
        form = self._form(given.plurals, here, conflicts)
        if form is not None and self._do(self._write_command(form, given, here), conflicts):
            return
        if given.new:
            wanted = merge_models(here.model.source, given.model, self._link.scope)
            if _differs(wanted, here, "groups"):
                self._tools.execute(self._link, ReplaceModel(wanted))

    def _form(self, plurals: Sequence[str], here: LocalRegistry, conflicts: Conflicts) -> ComparableGroup | None:
        """The attributes to write to this registry; None if none may be or need to be written."""
        if self._reported is None:
            return None
        try:
            form = comparable_registry(self._reported, plurals)
        except BrokenEntity as error:
            conflicts.add(xids.REGISTRY, str(error))
            return None
        held = here.registry()
        if held.link != self._link.id and (not form.attributes or here.has_own_changes()):
            return None
        return form if self._may(held.link, held.form.attributes, {}, held.form.attributes) else None

    def _write_command(self, form: ComparableGroup, given: RemoteModel, here: LocalRegistry) -> Command | None:
        """One write of attributes and model, because an attribute may be required; None if both are equal already."""
        said = given.model if given.new else {"attributes": given.model.get("attributes")}
        wanted = merge_models(here.model.source, said, self._link.scope, attributes=True)
        if _differs(wanted, here, "groups", "attributes"):
            return WriteTree(xids.REGISTRY, {**form.write_body(), "modelsource": wanted}, WriteMethod.PUT)
        return WriteTree(xids.REGISTRY, form.write_body(), WriteMethod.PUT) if here.registry().form != form else None

    def _do(self, command: Command | None, conflicts: Conflicts) -> bool:
        try:
            if command is not None:
                self._tools.execute(self._link, command)
        except Problem as problem:
            conflicts.add(xids.REGISTRY, problem.text())
            return False
        return True

    def _may(self, link: str | None, held: Mapping[str, Any], first: Mapping[str, Any], names: Any) -> bool:
        """Whether the link already copies this part, or may start to.

        first: values of a registry that was never written.
        """
        if link == self._link.id:
            return True
        living = [
            each for each in self._tools.readers.quick_view().links.all() if each.is_inbound and not each.promoted
        ]
        alone = [each.id for each in living] == [self._link.id]
        return alone and all(held.get(name) == first.get(name) for name in names)


def _differs(wanted: Mapping[str, Any], here: LocalRegistry, *parts: str) -> bool:
    """Whether some parts of the model would differ from the current model under a modelsource."""
    if wanted == here.model.source:
        return False
    full = compile_model(dict(wanted)).full
    return any(full.get(part) != here.model.full.get(part) for part in parts)
