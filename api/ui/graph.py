"""The graph of an endpoint: its messages, and the schemas of these (UI-51, UI-79)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from annals.api.http.response import Response
from annals.api.ui.explore.entity_view import find_place
from annals.api.ui.page_context import PageContext
from annals.domain.errors.problems import NotFound, Problem
from annals.domain.values import xid as xids

_ENDPOINTS: Final = "endpoints"
#: Attributes of a message that name its schema, the one that counts first.
_SCHEMA_NAMES: Final = ("dataschemaxid", "dataschemauri")
#: Nodes of a picture, and messages of a page unless the reader asks for another number (UI-18).
MAX_NODES: Final = 200
_MAX_UNRESOLVED: Final = 50
_MAX_REFERENCES: Final = 1000
#: The picture, in its own units: the left edges of its columns, the size of a node, and the height of a row.
_COLUMNS: Final = (8, 308, 608)
_WIDTH: Final = 884
_NODE_WIDTH, _NODE_HEIGHT, _ROW_HEIGHT = 264, 26, 36
_MAX_TEXT: Final = 36

#: The target and the state of a reference, by its source and its attribute.
References = Mapping[tuple[str, str], tuple[str, str]]


class GraphNode(NamedTuple):
    """Something that the graph shows. text: its xid, or a URI. url: of its page; empty if it has none."""

    text: str
    url: str
    mark: str = ""


class GraphRow(NamedTuple):
    """A message with its schema. schema: None for a message without one."""

    message: GraphNode
    schema: GraphNode | None


class PlacedNode(NamedTuple):
    """A node in the picture. x, y: of its upper left corner."""

    node: GraphNode
    x: int
    y: int

    @property
    def label(self) -> str:
        """The end of its text, which tells nodes apart."""
        text = self.node.text
        return text if len(text) <= _MAX_TEXT else f"…{text[1 - _MAX_TEXT :]}"


class Picture(NamedTuple):
    """Where nodes and edges are. edges: their ends as x and y."""

    width: int
    height: int
    node_width: int
    node_height: int
    nodes: Sequence[PlacedNode]
    edges: Sequence[tuple[int, int, int, int]]


async def graph_page(page: PageContext) -> Response:
    """The page. Raises: NotFound for what is no endpoint."""
    _, place = await find_place(page, page.path_params["xid"])
    if not place.is_group or place.is_collection or place.plural != _ENDPOINTS:
        raise NotFound(place.xid)
    found, pages = await page.get_list(f"/-/resolved{place.xid}", MAX_NODES)
    references = await _read_references(page, found["messages"])
    endpoint = GraphNode(place.xid, page.link(f"explore{place.xid}"))
    rows = [
        GraphRow(GraphNode(each["xid"], page.link(f"explore{each['xid']}")), _schema(page, each, references))
        for each in found["messages"]
    ]
    is_whole = pages.first is None and pages.next is None
    return await page.render(
        "graph.html",
        f"Graph of {place.segments[-1]}",
        endpoint=endpoint,
        rows=rows,
        pages=pages,
        is_whole=is_whole,
        picture=_picture(endpoint, rows) if is_whole else None,
        unresolved=found["unresolved"][:_MAX_UNRESOLVED],
    )


async def _read_references(page: PageContext, messages: Sequence[Mapping[str, Any]]) -> References:
    """The references of the messages and of their bases, read for each of their Groups at once if it has few."""
    sources = [xid for message in messages for xid in (message["xid"], *message["bases"])]
    by_group: dict[str, list[str]] = {}
    for xid in dict.fromkeys(sources):
        by_group.setdefault("/".join(xid.split("/")[:3]), []).append(xid)
    references: dict[tuple[str, str], tuple[str, str]] = {}
    for group, members in by_group.items():
        found, is_whole = await _references_below(page, group)
        if not is_whole:
            found = [each for xid in members for each in (await _references_below(page, xid))[0]]
        references |= {(each["from"], each["attribute"]): (each["to"], each["state"]) for each in found}
    return references


async def _references_below(page: PageContext, xid: str) -> tuple[Sequence[Mapping[str, Any]], bool]:
    """References from an entity and what is below it, and whether these are all; none if they cannot be read."""
    query = {"direction": "out", "below": "", "limit": str(_MAX_REFERENCES)}
    try:
        answer = await page.get(f"/-/references{xid}", query)
    except Problem:
        return [], True
    return answer.json["references"], answer.link("next") is None


def _schema(page: PageContext, message: Mapping[str, Any], references: References) -> GraphNode | None:
    """The schema that a resolved message names, itself or by its nearest base."""
    name = next((name for name in _SCHEMA_NAMES if name in message["message"]), None)
    if name is None:
        return None
    value = str(message["message"][name])
    for source in (message["xid"], *message["bases"]):
        for xid in (source, xids.resource_of(source)):
            if (xid, name) in references:
                target, state = references[xid, name]
                if state == "resolved":
                    return GraphNode(target, page.link(f"explore{target}"))
                return GraphNode(target, "", state.capitalize())
    return GraphNode(value, "")


def _picture(endpoint: GraphNode, rows: Sequence[GraphRow]) -> Picture | None:
    """The picture; None for a graph without messages, or with too many nodes."""
    schemas = list(dict.fromkeys(row.schema for row in rows if row.schema is not None))
    if not rows or 1 + len(rows) + len(schemas) > MAX_NODES:
        return None
    height = _ROW_HEIGHT * max(len(rows), len(schemas), 1) + 8
    placed_endpoint = PlacedNode(endpoint, _COLUMNS[0], (height - _NODE_HEIGHT) // 2)
    messages = _column([row.message for row in rows], _COLUMNS[1], height)
    placed_schemas = {placed.node: placed for placed in _column(schemas, _COLUMNS[2], height)}
    edges = [_edge(placed_endpoint, message) for message in messages]
    edges += [
        _edge(message, placed_schemas[row.schema])
        for message, row in zip(messages, rows, strict=True)
        if row.schema is not None
    ]
    nodes = [placed_endpoint, *messages, *placed_schemas.values()]
    return Picture(_WIDTH, height, _NODE_WIDTH, _NODE_HEIGHT, nodes, edges)


def _column(nodes: Sequence[GraphNode], x: int, height: int) -> list[PlacedNode]:
    top = (height - _ROW_HEIGHT * len(nodes)) // 2 + (_ROW_HEIGHT - _NODE_HEIGHT) // 2
    return [PlacedNode(node, x, top + _ROW_HEIGHT * index) for index, node in enumerate(nodes)]


def _edge(left: PlacedNode, right: PlacedNode) -> tuple[int, int, int, int]:
    return left.x + _NODE_WIDTH, left.y + _NODE_HEIGHT // 2, right.x, right.y + _NODE_HEIGHT // 2
