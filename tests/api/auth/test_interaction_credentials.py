"""An interaction stores authenticator and key id of its request: in all views of it, in hashes, in copied logs."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from annals.api.auth.callers import ORDER
from annals.commands.store.log import Store
from annals.commands.verify.verify_log import verify_log
from annals.projections.replication.log.log_lines import parse_interactions
from tests.api.auth.test_basic import ADA, basic
from tests.api.auth.test_jwt import KEY, jwk, token
from tests.api.auth.test_tls import CLIENTS, der_header
from tests.api.ui.test_login import cookie_of, post
from tests.commands.verify.test_proof import program_output
from tests.support.certificates import Authority
from tests.support.console import Annals, annals, folder
from tests.support.registries.in_process import Api, create, serving

__all__ = ["annals", "folder"]

TOKENS = {"t": {"name": "tim", "role": "writer"}, "a": {"name": "al", "role": "admin"}}
ADMIN = {"authorization": "Bearer a"}
LINES = {"accept": "application/x-ndjson", **ADMIN}


@pytest.fixture
def api(store_url: str, tmp_path: Path) -> Iterator[Api]:
    """A registry with all authenticators."""
    (tmp_path / "clients.json").write_text(json.dumps(CLIENTS))
    (tmp_path / "jwks.json").write_text(json.dumps({"keys": [jwk(KEY)]}))
    (tmp_path / "basic.json").write_text(json.dumps({"ada": {"password": ADA, "role": "writer"}}))
    options: dict[str, Any] = {"jwt_keys": str(tmp_path / "jwks.json"), "jwt_issuer": "i", "jwt_audience": "a"}
    files = {"tls_clients": str(tmp_path / "clients.json"), "basic_file": str(tmp_path / "basic.json")}
    create(store_url)
    options |= {"tokens": json.dumps(TOKENS), "trusted_proxies": "127.0.0.1", "api_keys": True, **files}
    with serving(store_url, **options) as api:
        yield api


def last_interaction(api: Api) -> Any:
    return api.send("GET", "/-/interactions?order=desc&limit=1", **ADMIN).json()[0]


def test_each_authenticator(api: Api, store_url: str, tmp_path: Path, annals: Annals) -> None:
    """ACC-115: all views of an interaction have its authenticator and key id, and the hashes of the log cover them."""
    api.now = datetime.now(UTC)  # sessions use the clock of the machine
    key = api.send("POST", "/-/keys", {"name": "ci", "role": "writer"}, **ADMIN).json()
    certificate = Authority(tmp_path / "authority").issue("ci", "/CN=ci/O=Example")
    headers = {
        "session": {"cookie": cookie_of(post(api, "/ui/login", token="t"))},
        "session of a key": {"cookie": cookie_of(post(api, "/ui/login", token=key["key"]))},
        "keys": {"authorization": f"Bearer {key['key']}"},
        "keys as passwords": {"authorization": basic(key["id"], key["key"])},
        "tokens": {"authorization": "Bearer t"},
        "jwt": {"authorization": f"Bearer {token(role='writer', exp=int(time.time()) + 600)}"},
        "basic": {"authorization": basic("ada", "correct horse")},
        "certificate": {"client-cert": der_header(certificate)},
    }
    assert {name.split()[0] for name in headers} == {*ORDER}
    callers = dict(zip(headers, ("tim", "key:ci", "key:ci", "key:ci", "tim", "jo", "ada", "ci"), strict=True))
    api.client.cookies.clear()
    for number, (name, sent) in enumerate(headers.items()):
        same_site = {"sec-fetch-site": "same-origin"} if "cookie" in sent else {}
        api.done("PUT", f"/dirs/d{number}", {}, **sent, **same_site)
        expected = {"caller": callers[name], "authenticator": name.split()[0]}
        if "key" in name:
            expected["keyid"] = key["id"]
        interaction = last_interaction(api)
        facts = {member: interaction.get(member) for member in ("caller", "authenticator", "keyid")}
        assert {member: value for member, value in facts.items() if value is not None} == expected
        revision = api.send("GET", f"/-/history/dirs/d{number}", **ADMIN).json()[0]
        assert expected.items() <= revision.items()
        one = api.send("GET", f"/-/interactions/{interaction['xregcorrelationid']}", **ADMIN).json()
        assert expected.items() <= one.items() and expected.items() <= one["events"][0].items()
        page = api.send("GET", f"/ui/interactions/{interaction['xregcorrelationid']}", **ADMIN).text
        assert f"<dt>Authenticator</dt><dd><bdi>{expected['authenticator']}</bdi>" in page
        assert (f"<dt>API key</dt><dd><code>{key['id']}</code>" in page) == ("keyid" in expected)
        printed = annals("log", "history", f"/dirs/d{number}", "--database", store_url).out
        assert printed.rstrip("\n").endswith("\t" + " ".join((*expected.values(),)[1:]))
    assert "authenticator" not in api.send("GET", "/-/interactions?limit=1", **ADMIN).json()[0]  # console
    csv = api.send("GET", "/-/interactions?format=csv&order=desc&limit=1", **ADMIN).text.split("\r\n")
    assert (csv[0].split(",")[-2:], csv[1].split(",")[-2:]) == (["authenticator", "keyid"], ["certificate", ""])
    check_log(api, store_url)


def check_log(api: Api, store_url: str) -> None:
    """The log has authenticator and key id, a copy reads them, and both verifications detect changes of them."""
    lines = api.send("GET", "/-/log", **LINES).content.splitlines()
    last = api.send("GET", "/-/log/head", **ADMIN).json()
    assert program_output(lines) == f"{last['position']} events, chain {last['chain']}, state {last['state']}\n"
    found = [(each.authenticator, each.keyid) for each in parse_interactions(lines)]
    sent = [json.loads(line) for line in lines if b'"first"' in line]
    assert found == [(each.get("authenticator", ""), each.get("keyid", "")) for each in sent]
    assert [name for name, _ in found if name][-6:] == ["keys", "keys", "tokens", "jwt", "basic", "certificate"]
    assert "differs" in program_output(
        [line.replace(b'"authenticator":"jwt"', b'"authenticator":"basic"') for line in lines]
    )
    with closing(Store(store_url)) as store:
        assert [*verify_log(store)] == []
        forgeries = {"authenticator = 'tokens' WHERE authenticator = 'jwt'": 1, "keyid = '' WHERE caller = 'key:ci'": 4}
        for forgery, damaged in forgeries.items():
            with store.engine.begin() as connection:
                connection.exec_driver_sql(f"UPDATE interaction SET {forgery}")
            assert [finding.text.split(":")[0] for finding in verify_log(store)] == ["the chain hash differs"] * damaged


def test_without_a_credential_nothing_is_added(store_url: str) -> None:
    """ACC-115: without authenticators, interactions have no members about credentials."""
    create(store_url)
    with serving(store_url) as api:
        api.done("PUT", "/dirs/d", {})
        line = api.send("GET", "/-/log", accept="application/x-ndjson").content.splitlines()[0]
        members = {"first", "last", "xregcorrelationid", "time", "caller", "command", "registryurl", "chain", "state"}
        assert json.loads(line).keys() == {*members, "salt"}
        assert api.get("/-/interactions")[-1].keys() == members
