"""The API keys and grants that a process has read."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from annals.projections.access import stored_access
from annals.projections.access.stored_access import AccessEntries, StoredAccess
from annals.projections.entities.view_pool import ViewPool
from tests.support.registries.in_process import create


def test_a_change_during_a_read_is_read_by_the_next_request(sqlite_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # ACC-47: what is being read may be older than the commit of this process
    create(sqlite_url)
    with closing(ViewPool(sqlite_url)) as readers:
        access = StoredAccess(clock=lambda: 1.0)
        access.open(readers)
        read_entries = stored_access.read_entries

        def read_while_it_changes(*arguments: Any) -> AccessEntries:
            found = read_entries(*arguments)
            access.invalidate()
            return found

        with monkeypatch.context() as patch:
            patch.setattr(stored_access, "read_entries", read_while_it_changes)
            access.refresh()
            assert not access.is_fresh
        access.refresh()
        assert access.is_fresh
