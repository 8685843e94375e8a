"""The database of a running server is removed or replaced: it says so and refuses writes, instead of losing them."""

from __future__ import annotations

import shutil
from pathlib import Path

import httpx
import pytest

from tests.support.serving import annals, serving

CHANGED = "the file of the database was removed or replaced; restart the server"


@pytest.mark.parametrize("change", ["removed", "replaced"])
def test_a_server_whose_file_was_removed_or_replaced(tmp_path: Path, change: str) -> None:
    file, other = tmp_path / "annals.db", tmp_path / "other.db"
    (tmp_path / "data.json").write_text('{"schemagroups": {"other": {}}}')
    assert annals("import", "data.json", "--database", f"sqlite:///{other}", cwd=tmp_path).returncode == 0
    shutil.copy(other, copy := tmp_path / "copy.db")
    with serving(f"sqlite:///{file}", tmp_path) as served, httpx.Client(base_url=served.url) as client:
        assert client.put("/schemagroups/before", json={}).status_code == 201
        assert client.get("/-/readyz").status_code == 200
        if change == "removed":
            file.unlink()
        else:
            copy.replace(file)
        for number in range(3):
            refused = client.put(f"/schemagroups/g{number}", json={})
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert refused.json()["type"].endswith("#store_unavailable")
            assert refused.json()["args"]["error_detail"] == CHANGED
        ready = client.get("/-/readyz")
        assert (ready.status_code, ready.json()["reason"]) == (503, f"the store cannot be used: {CHANGED}")
        assert client.get("/-/livez").status_code == 200
    log = (tmp_path / "serve.log").read_text()
    if change == "removed":
        assert not file.exists()
    else:
        verified = annals("log", "verify", "--database", f"sqlite:///{file}", cwd=tmp_path)
        assert verified.stdout == annals("log", "verify", "--database", f"sqlite:///{other}", cwd=tmp_path).stdout
        assert verified.returncode == 0
    assert log.count(f"the store cannot be used: {CHANGED} ({file})") == 1
