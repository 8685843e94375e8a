"""Views: look-ups, subtrees, and reads of one moment."""

from __future__ import annotations

import pytest

from annals.domain.values import xid as xids
from annals.projections.entities.entity_documents import MissingDocument
from annals.projections.entities.view import View
from tests.support.memory import peak_bytes
from tests.support.registries.recorded import Registry


@pytest.fixture
def tree(registry: Registry) -> Registry:
    """Three Groups whose ids share a prefix, with a few Resources."""
    ids = ("/dirs/d", "/dirs/d/files/f", "/dirs/d/files/f/versions/1", "/dirs/d/files/f-2", "/dirs/d-1", "/dirs/d.x")
    registry.record(("/", {"registryid": "r"}), ("/model", {}), ("/capabilities", {}))
    registry.record(*((xid, {"name": xid}) for xid in reversed(ids)))
    return registry


# ENT-31: look-ups are case-sensitive, though no two ids differ only in case
def test_entity_by_exact_xid(tree: Registry) -> None:
    view = tree.readers.quick_view()
    found = view.entity("/dirs/d/files/f")
    assert found and (found.xid, found.parent, found.id) == ("/dirs/d/files/f", "/dirs/d", "f")
    assert view.entity("/dirs/D/files/f") is None
    assert view.entity("/dirs/none") is None


def test_entities_come_in_the_order_asked_for(tree: Registry) -> None:
    requested = ["/dirs/d-1", "/dirs/none", "/", "/DIRS/d", "/dirs/d"]
    assert [row.xid for row in tree.readers.quick_view().entities(requested)] == ["/dirs/d-1", "/", "/dirs/d"]


def test_definitions_come_along(tree: Registry) -> None:
    view = tree.readers.quick_view()
    assert view.definitions() == (2, 3)
    end = tree.store.log_end().position
    found, definitions, position, _ = view.look_up("/dirs/d")
    assert found == view.entity("/dirs/d") and (definitions, position) == ((2, 3), end)
    assert view.look_up("/dirs/none") == (None, (2, 3), end, b"")
    tree.record(("/model", {"model": {}}))
    assert view.definitions() == (tree.store.log_end().position, 3)


def test_an_empty_model_has_no_definitions(registry: Registry) -> None:
    assert registry.readers.quick_view().definitions() == (0, 0)
    assert registry.readers.quick_view().look_up("/") == (None, (0, 0), 0, b"")
    assert registry.readers.quick_view().position() == 0


def test_subtree_in_tree_order(tree: Registry) -> None:
    def below(xid: str, *types: str) -> list[str]:
        with tree.readers.view() as view:
            return [row.xid for row in view.subtree(xid, types or None)]

    everything = [
        "/dirs/d", "/dirs/d/files/f", "/dirs/d/files/f/versions/1", "/dirs/d/files/f-2", "/dirs/d-1", "/dirs/d.x",
    ]  # fmt: skip
    assert below("/") == everything == below("/dirs") == sorted(everything, key=xids.tree_key)
    assert below("/dirs/d") == everything[1:4] == below("/dirs/d/files")
    assert below("/dirs/d/files/f") == everything[2:3]
    assert below("/", "dirs") == ["/dirs/d", "/dirs/d-1", "/dirs/d.x"]
    assert below("/dirs/d", "dirs.files", "dirs.files.versions") == everything[1:4]
    with tree.readers.view() as view:
        assert list(view.subtree("/", ())) == []


def test_a_view_stays_at_its_moment(tree: Registry) -> None:
    with tree.readers.view() as view:
        before = view.position()
        tree.record(("/dirs/d", None), ("/dirs/new", {"name": "n"}))
        assert view.entity("/dirs/d") and view.entity("/dirs/new") is None
        assert view.position() == before
        quick = tree.readers.quick_view()
        assert quick.entity("/dirs/d") is None and quick.entity("/dirs/new")
        assert quick.position() == tree.store.log_end().position


def test_a_view_over_a_write_transaction_sees_it(tree: Registry) -> None:
    with tree.store.writing() as tx:
        tree.entities.apply(tx.connection, tree.history.record(("/dirs/new", {"name": "n"})))
        view = View.of_connection(tx.connection)
        assert view.entity("/dirs/new")
        assert "/dirs/new" in [row.xid for row in view.subtree("/dirs")]
        assert tree.readers.quick_view().entity("/dirs/new") is None


# SER-18: the bytes of a document are stored unchanged
def test_documents(tree: Registry) -> None:
    tree.record(("/dirs/x", {"name": "x"}), documents={"ab": b"\x00\xff"})
    assert tree.readers.quick_view().document("ab") == b"\x00\xff"
    with pytest.raises(MissingDocument):
        tree.readers.quick_view().document("cd")


def test_a_closed_connection_is_replaced(tree: Registry) -> None:
    with tree.readers.view():
        pass
    tree.readers.quick_view()
    tree.readers.close()
    assert tree.readers.quick_view().entity("/dirs/d")
    with tree.readers.view() as view:
        assert view.entity("/dirs/d")


@pytest.mark.scale
def test_a_subtree_streams(registry: Registry) -> None:
    registry.record(*((f"/dirs/d{n}", {"name": "n" * 500}) for n in range(20_000)))
    with registry.readers.view() as view:

        def read() -> None:
            assert sum(1 for _ in view.subtree("/dirs")) == 20_000

        assert peak_bytes(read) < 6_000_000
