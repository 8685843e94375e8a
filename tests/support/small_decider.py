"""A minimal decider, so that tests of the log do not depend on rules of the registry."""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from annals.domain.decisions.commands import Command, DeleteEntities, WriteMethod, WriteTree
from annals.domain.decisions.world import Context, Decision, World
from annals.domain.registry.events import EntityCreated, EntityDeleted, EntityEvent, EntityUpdated
from annals.domain.values import xid as xids


class Refused(Exception):
    """The command is refused."""


def write(*names: str, document: bytes | None = None, **attributes: Any) -> WriteTree:
    """Creates or updates the named entities, each with the same attributes."""
    return WriteTree("/", dict.fromkeys(names, attributes), WriteMethod.PUT, document)


def refuse() -> WriteTree:
    """A command that is refused."""
    return WriteTree("/", {}, WriteMethod.PATCH)


def delete(xid: str) -> DeleteEntities:
    """Deletes an entity and its descendants."""
    return DeleteEntities(xid)


def decide(command: Command, world: World, context: Context) -> Decision:
    """Decides the three commands above."""
    match command:
        case WriteTree(method=WriteMethod.PATCH):
            raise Refused
        case WriteTree(tree=tree, document=document):
            world.prefetch(tree)
            digest = None if document is None else sha256(document).hexdigest()
            events = [_written(world, context, xid, tree[xid], digest) for xid in sorted(tree, key=xids.event_order)]
            return Decision(tuple(events), {digest: document} if digest and document else {}, tuple(tree))
        case DeleteEntities(xid=xid):
            gone = [xid, *(entity.xid for entity in world.subtree(xid))]
            return Decision(tuple(_deleted(world, context, name) for name in gone if world.get(name)), {})
    raise AssertionError(command)


def _written(world: World, context: Context, xid: str, attributes: dict[str, Any], document: str | None) -> EntityEvent:
    known = world.get(xid)
    return (EntityUpdated if known else EntityCreated)(
        xid=xid,
        type=xids.type_of(xid),
        revision=world.revision(xid) + 1,
        epoch=known.epoch + 1 if known else 1,
        attributes=attributes,
        private={"counter": world.revision(xid)} | ({"document": document} if document else {}),
        changed=("epoch",) if known else (),
        xregcorrelationid=context.xregcorrelationid,
        time=context.now,
    )


def _deleted(world: World, context: Context, xid: str) -> EntityEvent:
    known = world.get(xid)
    assert known is not None
    return EntityDeleted(
        xid=known.xid,
        type=known.type,
        revision=known.revision + 1,
        epoch=known.epoch,
        attributes={},
        xregcorrelationid=context.xregcorrelationid,
        time=context.now,
    )
