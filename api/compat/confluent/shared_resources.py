"""The Resources that show the versions of another one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from annals.domain.confluent.subjects import GROUPS, RESOURCES
from annals.projections.entities.query import PastView, View
from annals.projections.entities.rows import EntityRow
from annals.projections.entities.xref import xref_of

_TYPE = f"{GROUPS}.{RESOURCES}"


def resources_with_xref(view: View) -> Iterator[EntityRow]:
    """The Resources with an xref.

    Cost: one look-up in an index, and those of the Resources that are found; of a past moment, all Resources.
    """
    rows: Iterable[EntityRow | None]
    if isinstance(view, PastView):
        rows = view.subtree(f"/{GROUPS}", [_TYPE])
    else:
        overrides = view.row_overrides(f"/{GROUPS}", [_TYPE])
        rows = overrides.images.values() if overrides is not None else ()
    return (row for row in rows if row is not None and xref_of(row) is not None)
