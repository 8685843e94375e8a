"""All places that show the version agree."""

from __future__ import annotations

import platform
from pathlib import Path

import httpx

from annals import __version__
from annals.api.ops.version import SERVER_HEADER
from tests.api.ops.test_metrics import figures
from tests.support.registries.in_process import Api
from tests.support.serving import annals, serving


def test_all_places_agree(tmp_path: Path) -> None:
    assert annals("--version", cwd=tmp_path).stdout == f"annals {__version__}\n"
    with serving(f"sqlite:///{tmp_path}/annals.db", tmp_path) as served, httpx.Client(base_url=served.url) as client:
        shown = client.get("/-/version")
        assert shown.json() == {
            "name": "annals",
            "version": __version__,
            "specversions": client.get("/").json()["specversion"].split(),
            "python": platform.python_version(),
        }
        assert client.get("/-/openapi.json").json()["info"]["version"] == __version__
        assert client.get("/-/").json()["version"] == __version__
        built = f'annals_build_info{{python="{platform.python_version()}",version="{__version__}"}} 1.0'
        assert built in client.get("/-/metrics").text.splitlines()
        answers = [shown, client.get("/nope"), client.put("/schemagroups/g", json={}), client.get("/-/log")]
        answers += [client.get("/-/nope"), client.get("/", headers={"x": "y" * 20_000})]  # refused before any API
        assert [answer.headers.get_list("server") for answer in answers] == [[f"annals/{__version__}"]] * len(answers)


def test_it_is_read_only_and_needs_a_caller(api: Api) -> None:
    assert api.send("OPTIONS", "/-/version").headers["allow"] == "GET, HEAD, OPTIONS"
    assert api.send("POST", "/-/version", {}).status_code == 405
    assert api.send("GET", "/-/version/more").status_code == 404
    assert figures(api)["annals_build_info", platform.python_version(), __version__] == 1
    assert SERVER_HEADER[1].isascii()
