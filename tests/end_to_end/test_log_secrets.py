"""No log line contains a secret: scans the output of a server at level debug for markers that all secrets contain."""

from __future__ import annotations

import json
import socket
import sqlite3
import time
from base64 import b64encode
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.serving import annals, serving

MARK: Final = "swordfish"
MASTER_KEY: Final = b64encode(f"{MARK}-master-key".ljust(32, "x").encode()).decode()
TOKEN: Final = f"{MARK}-token"
ADMIN: Final = {"authorization": f"Bearer {TOKEN}"}
#: Nothing listens there.
CLOSED: Final = "127.0.0.1:9"
#: Sinks of other protocols, whose client libraries write log lines of their own.
OTHER_SINKS: Final[tuple[dict[str, Any], ...]] = (
    {"sink": f"kafka://{CLOSED}", "protocol": "KAFKA", "protocolsettings": {"topicname": "t"}},
    {"sink": f"mqtt://{CLOSED}", "protocol": "MQTT5", "protocolsettings": {"topicname": "t"}},
    {"sink": f"nats://{CLOSED}", "protocol": "NATS", "protocolsettings": {"subject": "t"}},
)
PLAIN: Final = {"credentialtype": "PLAIN", "identifier": "u", "secret": f"{MARK}-plain"}
BASIC: Final = {"type": "basic", "username": "u", "password": f"{MARK}-password"}
BEARER: Final = {"type": "bearer", "token": f"{MARK}-link-token"}
LINKS: Final = {
    "configured": {"url": f"http://{CLOSED}/", "credential": BEARER, "scope": {"groups": ["/schemagroups/configured"]}}
}


def settings(folder: Path, log_format: str) -> dict[str, str]:
    key = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP256R1()).public_key()))
    (folder / "keys.json").write_text(json.dumps({"keys": [{**key, "kid": "k", "alg": "ES256"}]}))
    return {
        "ANNALS_LOG_LEVEL": "debug",
        "ANNALS_LOG_FORMAT": log_format,
        "ANNALS_ACCESS_LOG": "on",
        "ANNALS_TOKENS": json.dumps({TOKEN: {"name": "root", "role": "admin"}}),
        "ANNALS_JWT_KEYS": str(folder / "keys.json"),
        "ANNALS_MASTER_KEY": MASTER_KEY,
        "ANNALS_LINKS": json.dumps(LINKS),
        "ANNALS_KAFKA_USERNAME": "u",
        "ANNALS_KAFKA_PASSWORD": f"{MARK}-kafka",
        "ANNALS_SINKS_ALLOW": "127.0.0.1:9",
        "ANNALS_SINKS_PLAINTEXT": "true",
        "ANNALS_MASTER_KEYS": f"{MARK}-misspelled",
    }


def subscription(**members: Any) -> dict[str, Any]:
    """A subscription with secrets, whose token expires so soon that the server has to get a new one."""
    expires = datetime.now(UTC) + timedelta(minutes=1)
    body = {
        "sink": f"http://{CLOSED}/in?token={MARK}-sink-query",
        "protocol": "HTTP",
        "types": ["io.xregistry.group.created"],
        "sinkcredential": {
            "credentialtype": "REFRESHTOKEN",
            "accesstoken": f"{MARK}-access",
            "accesstokenexpiresutc": f"{expires:%Y-%m-%dT%H:%M:%SZ}",
            "refreshtoken": f"{MARK}-refresh",
            "refreshtokenendpoint": f"https://{CLOSED}/token?k={MARK}-endpoint",
        },
        "protocolsettings": {
            "headers": {"X-Api-Key": f"{MARK}-header"},
            "deadletter": {"mode": "sink", "uri": f"http://{CLOSED}/dead?k={MARK}-dead"},
        },
    }
    return {**body, **members}


def send_requests(url: str) -> None:
    """Sends requests with and without permission, with secrets in every possible place."""
    unsigned = jwt.encode({"sub": f"{MARK}-subject"}, f"{MARK}-key".ljust(32, "x"), headers={"kid": "k"})
    with httpx.Client(base_url=url, timeout=30) as client:
        for credential in (f"Bearer {MARK}-bad", f"Bearer {unsigned}", f"Basic {MARK}", f"{MARK}", f"Bearer {TOKEN} x"):
            assert client.get("/", headers={"authorization": credential}).status_code == 401
        for path in ("/", "/schemagroups", "/-/log", "/export", "/subscriptions", "/nothing", "/-/nothing", "/-/docs"):
            client.get(path, headers=ADMIN, params={"token": f"{MARK}-query", "filter": f"{MARK}=x"})
        for path in (f"/-/subscriptions/x/consent/{MARK}", f"/a/-/subscriptions/x/consent/{MARK}"):
            for end in ("", "/", "/x"):
                assert client.get(path + end, headers=ADMIN).status_code == 404
        created = client.post("/subscriptions", headers=ADMIN, json=subscription())
        assert created.status_code == 201, created.text
        for sink in OTHER_SINKS:
            body = subscription(**sink, sinkcredential=PLAIN)
            assert client.post("/subscriptions", headers=ADMIN, json=body).status_code == 201
        client.post("/subscriptions", headers=ADMIN, json=subscription(sink=f"https://u:{MARK}@x.example/"))
        for id, login in {"basic": BASIC, "bearer": BEARER}.items():
            scope = {"groups": [f"/schemagroups/{id}"]}
            link = {
                "url": f"http://{CLOSED}/",
                "dialect": "xregistry",
                "credential": login,
                "scope": scope,
            }
            created_link = client.put(f"/-/links/{id}", headers=ADMIN, json=link)
            assert created_link.status_code == 201, created_link.text
            assert client.post(f"/-/links/{id}/actions/check", headers=ADMIN).status_code >= 400
        assert client.put("/schemagroups/g", headers=ADMIN, json={}).status_code == 201
        client.get("/", headers={**ADMIN, "x-long": MARK * 5000})
    with closing(socket.create_connection((urlsplit(url).hostname or "", urlsplit(url).port or 80))) as raw:
        raw.sendall(f"GET /?token={MARK} NONSENSE {MARK}\r\n{MARK}\r\n\r\n".encode())
        raw.recv(1000)


def send_failing_requests(url: str, database: Path) -> None:
    """Sends requests that fail inside the server, for log lines with tracebacks and SQL statements."""
    with closing(sqlite3.connect(database)) as connection:
        for table in ("secret", "entity"):
            connection.execute(f"ALTER TABLE {table} RENAME TO {table}_away")
            connection.commit()
            with httpx.Client(base_url=url, headers=ADMIN, timeout=30) as client:
                answer = client.post("/subscriptions", json=subscription(types=["io.xregistry.group.deleted"]))
                assert answer.status_code == 500, answer.text
                assert client.get(f"/schemagroups/g?token={MARK}").status_code in (200, 500)


@pytest.mark.parametrize("log_format", ["console", pytest.param("json", marks=pytest.mark.long)])
@pytest.mark.long
def test_a_scan(log_format: str, tmp_path: Path) -> None:
    database, environment = tmp_path / "annals.db", settings(tmp_path, log_format)
    with serving(f"sqlite:///{database}", tmp_path, **environment) as served:
        send_requests(served.url)
        time.sleep(3)  # deliveries and links fail and are retried
        send_failing_requests(served.url, database)
    printed = (tmp_path / "serve.log").read_text()
    for text in (
        "request denied",
        "jwt: ",
        "request failed",
        "OperationalError",
        "/consent/***",
        "ANNALS_MASTER_KEYS is not",
    ):
        assert text in printed, text
    for secret in (MARK, MASTER_KEY):
        assert [line for line in printed.splitlines() if secret in line] == []
    if log_format == "json":
        assert all({"time", "level", "logger", "event"} <= json.loads(line).keys() for line in printed.splitlines())


@pytest.mark.parametrize("log_format", ["console", pytest.param("json", marks=pytest.mark.long)])
def test_verbs(log_format: str, tmp_path: Path) -> None:
    """The output of `config`, and of other verbs that fail, contains no secret."""
    secrets = {"ANNALS_SEGMENTS": f"s3://k:{MARK}@bucket/x", "ANNALS_TOKEN": TOKEN, "ANNALS_LINK_SECRET": MARK}
    spark = {"ANNALS_SPARK_CONF": json.dumps({"spark.hadoop.fs.s3a.secret.key": MARK})}
    environment = {**settings(tmp_path, log_format), **secrets, **spark}
    missing = f"postgresql://me:{MARK}@{CLOSED}/annals"
    for arguments in (
        ("config", "--explain"),
        ("config", "--explain", "--database", missing),
        ("export", "--database", missing),
        ("publish", "--kafka", f"SSL://{CLOSED}", "--once", "--database", missing),
        ("subscriptions", "list", "--database", missing),
        ("replicate", "list", "--database", missing),
        ("segments", "list"),
    ):
        ended = annals(*arguments, cwd=tmp_path, **environment)
        for secret in (MARK, MASTER_KEY):
            assert secret not in ended.stderr and secret not in ended.stdout, (arguments, ended)
