"""A registry follows the log of another one over HTTP."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.registries.restarted import registries, wait_until_equal_logs


@pytest.mark.parametrize("primary", ["sqlite", "postgresql"])
def test_a_replica_has_the_same_interactions_under_their_own_ids(
    tmp_path: Path, primary: str, request: pytest.FixtureRequest
) -> None:
    """LEG-910: a replica records whole interactions, with their ids in the source."""
    databases = {"a": request.getfixturevalue("postgres_url")} if primary == "postgresql" else {}
    with registries(tmp_path, "a", "b", **databases) as (a, b):
        a.fill(2, 5)
        b.link("a", a.url)
        wait_until_equal_logs(a, b)
        a.write("later/s/1", name="written later")
        a.done("DELETE", "/schemagroups/group0")
        wait_until_equal_logs(a, b)
        assert b.done("GET", "/schemagroups?inline=*") == _with_url(
            a.done("GET", "/schemagroups?inline=*"), a.url, b.url
        )
        b.verified()


def _with_url(found: object, here: str, there: str) -> object:
    """A JSON value with the URL of one registry replaced by that of another."""
    if isinstance(found, dict):
        return {name: _with_url(value, here, there) for name, value in found.items()}
    return there + found.removeprefix(here) if isinstance(found, str) and found.startswith(here) else found
