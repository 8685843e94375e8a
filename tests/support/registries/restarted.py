"""Served registries that tests kill and restart. Each is a process, and has the same address after a restart."""

from __future__ import annotations

import base64
import json
import os
import ssl
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import httpx

from annals.domain.values.xid import is_outside_tree
from tests.support.brokers.certificates import CertificateFiles, issue_certificate
from tests.support.polling import until
from tests.support.ports import free_port
from tests.support.registries.client import VERSION, RegistryClient
from tests.support.serving import annals, serving

#: The tokens of an administrator and of a writer.
TOKEN: Final = "the-token-of-an-administrator"
WRITER: Final = "the-token-of-a-writer"
TOKENS: Final = {TOKEN: {"name": "root", "role": "admin"}, WRITER: {"name": "wilma", "role": "writer"}}
MASTER_KEY: Final = base64.b64encode(os.urandom(32)).decode()
_SECONDS: Final = 60.0
_LOOPBACK: Final = "127.0.0.1"


class Location(NamedTuple):
    """Where a registry runs. host: its address for other registries. near: its address for tests. listens: the address
    that it listens on. reaches: addresses that it may connect to. within: a prefix of its commands.
    """

    host: str = _LOOPBACK
    near: str = _LOOPBACK
    listens: str = _LOOPBACK
    reaches: str = _LOOPBACK
    within: tuple[str, ...] = ()


LOCAL: Final = Location()
#: A process that is no fork, so that it has its own hash seed and order of sets.
SEPARATE_PROCESS: Final = Location(within=("env",))


class Registry(RegistryClient):
    """One registry and a client of it. home: its directory. url: is the same after a restart.

    settings: of its environment; `ANNALS_TOKENS` may be changed between `stop` and `start`.
    """

    def __init__(
        self,
        home: Path,
        database: str | None = None,
        place: Location = LOCAL,
        tls: CertificateFiles | None = None,
        **settings: str,
    ) -> None:
        """tls: with it, the registry is served over TLS, and trusts the authority of its own certificate."""
        home.mkdir(exist_ok=True)
        self.home = home
        self.place = place
        self.port = free_port(place.listens)
        self._tls = tls
        self._scheme = "http" if tls is None else "https"
        self.url = f"{self._scheme}://{place.host}:{self.port}"
        self.database = database or f"sqlite:///{home / 'annals.db'}"
        self.settings = {
            "ANNALS_TOKENS": json.dumps(TOKENS),
            "ANNALS_MASTER_KEY": MASTER_KEY,
            "ANNALS_PUBLIC_URL": self.url,
            "ANNALS_SINKS_ALLOW": place.reaches,
            "ANNALS_SINKS_PLAINTEXT": "true",
        } | settings
        if tls is not None:
            files = {"ANNALS_TLS_CERT": tls.certificate, "ANNALS_TLS_KEY": tls.key, "ANNALS_SINKS_CA": tls.ca}
            self.settings |= {name: str(path) for name, path in files.items()}
        self._up = ExitStack()
        self._client = self.client(TOKEN)

    def start(self) -> None:
        """Serves the registry; returns when it answers."""
        options = ("--host", self.place.listens, "--port", str(self.port))
        served = serving(self.database, self.home, *options, within=self.place.within, **self.settings)
        self.process = self._up.enter_context(served).process

    def stop(self) -> None:
        """Stops the process with SIGTERM and waits."""
        self._up.close()

    def kill(self) -> None:
        """Kills the process with SIGKILL."""
        self.process.kill()
        self.process.wait()
        self._up.close()

    def close(self) -> None:
        """Stops the process and closes the client."""
        self.stop()
        super().close()

    def credential(self, token: str) -> None:
        """Uses another token for all later requests."""
        self._client.headers["authorization"] = f"Bearer {token}"

    def client(self, token: str | None) -> httpx.Client:
        """Another client. token: None for an anonymous client."""
        headers = {"authorization": f"Bearer {token}"} if token is not None else {}
        url = f"{self._scheme}://{self.place.near}:{self.port}"
        verify = True if self._tls is None else ssl.create_default_context(cafile=self._tls.ca)
        return httpx.Client(base_url=url, headers=headers, timeout=_SECONDS, trust_env=False, verify=verify)

    def link(self, id: str, url: str, **members: Any) -> dict[str, Any]:
        """Creates or changes a link, by default with an administrator's token. Returns its document."""
        document = {"url": url, "credential": {"token": TOKEN}, **members}
        found: dict[str, Any] = self.done("PUT", f"/-/links/{id}", document)
        return found

    def status(self, id: str) -> dict[str, Any]:
        """The status of a link."""
        found: dict[str, Any] = self.done("GET", f"/-/links/{id}")["status"]
        return found

    def fill(self, groups: int, schemas: int, start: str = "group") -> None:
        """Writes many schemas with a document each; one interaction for each Group."""
        for number in range(groups):
            made = {f"s{each}": {**VERSION, "schema": f"{number} {each}"} for each in range(schemas)}
            self.done("PUT", f"/schemagroups/{start}{number}", {"schemas": made})

    def head(self) -> dict[str, Any]:
        """The head of the log."""
        found: dict[str, Any] = self.done("GET", "/-/log/head")
        return found

    def ids(self) -> list[str]:
        """The correlation ids of the interactions of the tree, in order; the first created the registry."""
        with self._client.stream("GET", "/-/log", headers={"accept": "application/x-ndjson"}) as lines:
            found = [json.loads(line) for line in lines.iter_lines()]
        apart = {each["position"] for each in found if is_outside_tree(each.get("stream", ""))}
        return [each["xregcorrelationid"] for each in found if "first" in each and each["first"] not in apart]

    def verified(self) -> str:
        """The output of `annals log verify`, which must succeed."""
        settings = {name: value for name, value in self.settings.items() if name == "ANNALS_MASTER_KEY"}
        done = annals("log", "verify", "--database", self.database, cwd=self.home, **settings)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@contextmanager
def registries(
    home: Path, *names: str, places: Mapping[str, Location] | None = None, **databases: str
) -> Iterator[list[Registry]]:
    """Registries that run, in directories of their names.

    places: by name, for those that do not run next to the tests. databases: URLs by name, for those that are no SQLite.
    """
    hosts = {host for place in (places or {}).values() for host in (place.host, place.near)} - {_LOOPBACK}
    tls = issue_certificate(home / "certificates", *sorted(hosts)) if hosts else None  # credentials need it
    with ExitStack() as stack:
        found = []
        for name in names:
            registry = Registry(home / name, databases.get(name), (places or {}).get(name, LOCAL), tls)
            stack.callback(registry.close)
            registry.start()
            found.append(registry)
        yield found


def wait_until_equal_logs(one: Registry, *others: Registry, seconds: float = _SECONDS) -> None:
    """Waits until the others have the state of one registry, by the same interactions, each of them once.

    The first interaction, which created the registry, may differ.
    """
    for other in others:
        until(partial(_level, one, other), seconds)
        assert other.ids()[1:] == one.ids()


def _level(one: Registry, other: Registry) -> bool:
    return bool(one.head()["state"] == other.head()["state"])
