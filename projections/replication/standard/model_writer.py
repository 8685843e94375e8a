"""Writes the model of another registry here, where copies of the link may be in the way.

The other registry may have changed a type and the entities of it between two polls. The copies then do not fit the new
model, and what they became does not fit the old one.
"""

from __future__ import annotations

from collections.abc import Collection

from annals.domain.decisions.commands import Command, DeleteEntities
from annals.domain.decisions.rules.stored_entities import MAX_NAMED
from annals.domain.errors.problems import ModelComplianceError, Problem
from annals.domain.replication.link import Link
from annals.domain.values import xid as xids
from annals.projections.replication.link_worker import LinkWorkerContext
from annals.projections.replication.standard.local_registry import LocalRegistry
from annals.projections.replication.standard.source import StandardSource


class ModelWriter:
    """Writes models for one link."""

    def __init__(self, link: Link, context: LinkWorkerContext) -> None:
        self._link = link
        self._context = context
        self._refused: Command | None = None  # without this, each poll would delete and copy for nothing

    def write(self, command: Command, source: StandardSource, local_registry: LocalRegistry) -> None:
        """Executes a command that changes the model. If all that does not fit are copies of the link, and fewer than an
        error names, they are deleted, and the next pass copies them from the source as they are there now.

        Raises: Problem; a ModelComplianceError, without a deletion, if something else does not fit either.
        """
        while True:
            try:
                self._context.execute(self._link, command)
                return
            except ModelComplianceError as problem:
                misfits = self._copies_in_the_way(problem, local_registry) if command != self._refused else ()
                if not misfits:
                    self._refused = command
                    raise
            except Problem:
                self._refused = command
                raise
            for xid in misfits:
                self._context.execute(self._link, DeleteEntities(xid))
            source.forget_listings()

    def _copies_in_the_way(self, problem: ModelComplianceError, local_registry: LocalRegistry) -> Collection[str]:
        """The Groups and Resources that do not fit a model, if all are copies of the link; otherwise none.

        None also if the error names as many as it can, because there may be others.
        """
        entities = problem.extensions["entities"]
        assert isinstance(entities, list), "it is about stored entities"
        if len(entities) >= MAX_NAMED or self._context.stopping.is_set():
            return ()
        parts = [xids.segments(str(xid)) for xid in entities]
        owners = dict.fromkeys(xids.join(*each[: 4 if len(each) >= 4 else 2]) for each in parts)
        return owners if all(self._is_copy(xid, local_registry) for xid in owners) else ()

    def _is_copy(self, xid: str, local_registry: LocalRegistry) -> bool:
        """Whether the link maintains a Group with all its Resources, or a Resource."""
        if len(xids.segments(xid)) == 4:
            resource = local_registry.resource(xid)
            return resource is not None and self._link.has_copy(xid, resource.link)
        group = local_registry.group(xid) if xid != xids.REGISTRY else None
        if group is None:
            return False
        return all(self._link.has_copy(*each) for each in [(xid, group.link), *local_registry.resources(xid)])
