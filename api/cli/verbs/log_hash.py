"""`annals log hash`: the hash of a part of the tree, and the first difference from another registry."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Annotated, Any, Final

import typer

from annals.api.audit.tree_hash_params import HashResult, hash_tree_parts, parse_hash_params
from annals.api.cli.options import Database, bearer_token, load_settings, require_moment
from annals.api.cli.outcome import InvalidInput
from annals.api.cli.remote_registry import RemoteRegistry
from annals.api.cli.tables import Column, print_rows
from annals.api.cli.verbs.log_history import PathArgument, open_view, parse_path_argument
from annals.api.registry.definitions import read_definitions
from annals.commands.store.log import Store
from annals.domain.access.roles import CONSOLE
from annals.domain.errors.problems import NotFound
from annals.domain.values import xid as xids
from annals.projections.audit.hash_comparison import HashDifference, HashQuery, HashSource, first_difference
from annals.projections.audit.tree_hashes import part_members
from annals.projections.entities.view import View

AsOf = Annotated[
    str | None,
    typer.Option("--asof", callback=require_moment, help="A moment: a position, a time or a correlation id."),
]
Against = Annotated[str | None, typer.Option("--against", metavar="URL", help="Root of a registry to compare with.")]
Token = Annotated[
    str | None, typer.Option("--token", envvar="ANNALS_TOKEN", help="Bearer token for the registry of --against.")
]

_HASH_COLUMNS: Final = (Column(64, "cyan"), Column(7), Column(7, "dim"), Column(style="bold"))
_CHANGE_STYLES: Final = {"missing here": "green", "missing there": "red", "different": "yellow"}
_DIFFERENCE_COLUMNS: Final = (
    Column(13, _CHANGE_STYLES),
    Column(style="bold"),
    Column(style="dim"),
    Column(style="dim"),
)


def hash_(
    path: PathArgument = "/",
    asof: AsOf = None,
    against: Against = None,
    token: Token = None,
    database: Database = None,
) -> None:
    """Print the hash of an entity or collection with everything below it, the number of entities, and the position.

    Two registries with the same hash have the same entities there. With --against, the command also prints the first
    entity in which another registry differs: how, its xid, and both hashes. The exit code is then 1; it is 3 if they
    could not be compared. This takes at most seven requests for a million entities. Both sides are compared at the
    given moment, or now.

    Example: annals log hash /schemagroups --against https://replica.example.com
    """
    difference = None
    with ExitStack() as stack:
        remote = _open_remote(against, token, database) if against is not None else None
        view, store = stack.enter_context(open_view(database))
        xid = parse_path_argument(path)
        _check_type(view, xid)
        local_hash = _hash_parts(view, store, xid, {"asof": [asof]} if asof else {})
        print_rows(_HASH_COLUMNS, [(local_hash.members["hash"], local_hash.members["count"], local_hash.position, xid)])
        if remote is not None:
            stack.callback(remote.close)
            local_side = _local_source(view, store, xid, local_hash.position)
            difference = first_difference(local_side, remote.hash_source(xid, asof))
    if difference:
        print_rows(_DIFFERENCE_COLUMNS, [_difference_row(difference)])
        raise InvalidInput(f"{against} differs.")


def _open_remote(url: str, token: str | None, database: str | None) -> RemoteRegistry:
    return RemoteRegistry(url, bearer_token(token, url), load_settings(database=database).sinks_ca or "")


def _check_type(view: View, xid: str) -> None:
    """Checks that entities can be at a path, so that a mistyped one is not taken for an equal part without entities.

    A type that the model has had counts: its entities may be those of an earlier moment. Raises: NotFound.
    """
    if xid in xids.ROOT_STREAMS or view.trail.has_existed(xid) or view.trail.has_existed_below(xid):
        return
    names = xids.segments(xid)[::2]
    group_type = read_definitions(view).model.groups.get(names[0])
    is_known = group_type is not None and (
        len(names) == 1 or (names[1] in group_type.resources and names[2:] in ((), ("versions",)))
    )
    if not is_known:
        raise NotFound(xid)


def _hash_parts(view: View, store: Store, xid: str, query: HashQuery) -> HashResult:
    return hash_tree_parts(view, xid, parse_hash_params(query, xid), store.clock(), CONSOLE)


def _local_source(view: View, store: Store, xid: str, position: int) -> HashSource:
    """The local side of a comparison."""

    def ask(query: HashQuery) -> dict[str, Any]:
        result = _hash_parts(view, store, xid, {**query, "asof": [str(position)]})
        return {**result.members, "parts": list(map(part_members, result.parts))}

    return ask


def _difference_row(difference: HashDifference) -> tuple[object, ...]:
    change = "missing here" if difference.here is None else "missing there" if difference.there is None else "different"
    return change, difference.xid, difference.here, difference.there
