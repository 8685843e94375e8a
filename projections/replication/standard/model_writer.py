"""Writes the model of another registry here, where copies of the link may be in the way.

The other registry may have changed a type and the entities of it between two polls. The copies then do not fit the new
model, and what they became does not fit the old one.
"""

from __future__ import annotations

from annals.domain.decisions.commands import Command, DeleteEntities
from annals.domain.errors.problems import ModelComplianceError
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
        """Executes a command that changes the model. Copies of the link that do not fit the new model are deleted, and
        the next pass copies them from the source as they are there now.

        Raises: Problem; a ModelComplianceError if something else does not fit either.
        """
        while True:
            try:
                self._context.execute(self._link, command)
                return
            except ModelComplianceError as problem:
                misfits = _misfits(problem)
                is_hopeless = command == self._refused or self._context.stopping.is_set()
                if is_hopeless or not all(self._is_copy(xid, local_registry) for xid in misfits):
                    self._refused = command
                    raise
            for xid in misfits:
                self._context.execute(self._link, DeleteEntities(xid))
            source.forget_listings()

    def _is_copy(self, xid: str, local_registry: LocalRegistry) -> bool:
        """Whether a Group with all its Resources, or a Resource, came over the link."""
        if len(xids.segments(xid)) == 4:
            resource = local_registry.resource(xid)
            return resource is not None and resource.link == self._link.id
        group = local_registry.group(xid) if xid != xids.REGISTRY else None
        links = [link for _, link in local_registry.resources(xid)] if group is not None else []
        return group is not None and {group.link, *links} == {self._link.id}


def _misfits(problem: ModelComplianceError) -> list[str]:
    """The Groups and Resources that do not fit, or have what does not fit; the registry for its own attributes."""
    entities = problem.extensions["entities"]
    assert isinstance(entities, list), "it is about stored entities"
    parts = [xids.segments(str(xid)) for xid in entities]
    return list(dict.fromkeys(xids.join(*each[: 4 if len(each) >= 4 else 2]) for each in parts))
