"""ActiveMQ Artemis, embedded in a JVM of its own: AMQP 1.0 plain and with TLS, also through WebSockets."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from contextlib import AbstractContextManager
from os import pathsep
from pathlib import Path
from typing import Any, Final

from cryptography.hazmat.primitives.serialization import BestAvailableEncryption, load_pem_private_key, pkcs12
from cryptography.x509 import load_pem_x509_certificate

from annals.projections.subscriptions.contract import Credential, SinkTarget
from tests.support.brokers import amqp
from tests.support.brokers.certificates import CertificateFiles, issue_certificate
from tests.support.brokers.suite import GOOD, HOST, PASSWORD, USER, Broker, Receiver
from tests.support.downloads.maven import jars, java
from tests.support.ports import free_port, wait_for_port

_ARTIFACTS: Final = (
    "org.apache.activemq:artemis-server:2.40.0",
    "org.apache.activemq:artemis-amqp-protocol:2.40.0",
    "org.slf4j:slf4j-nop:2.0.17",
)
_SOURCE: Final = Path(__file__).with_name("Artemis.java")
_OPTIONS: Final = ("-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
QUEUE: Final = "annals"


class Artemis(Broker):
    """The broker, started by `start` and ended by `close`.

    It creates queues at first use, except below `known.`; see its source for further addresses.
    """

    protocol = "AMQP"
    reconnects_after_timeout = False
    slow = 60.0

    def __init__(self) -> None:
        self._java, self._jars = java(), jars(*_ARTIFACTS)
        self._folder = Path(tempfile.mkdtemp(prefix="annals-artemis-"))
        files = issue_certificate(self._folder / "tls", HOST)
        self.ca, self._store = files.ca, _store(files)
        self.port, self.tls_port = free_port(), free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def target(
        self,
        *,
        contentmode: str = "structured",
        credential: Credential | None = GOOD,
        tls: bool = False,
        seconds: float = 10.0,
        host: str = HOST,
        port: int | None = None,
        web: bool = False,
        **settings: Any,
    ) -> SinkTarget:
        """See suite.Broker. web: through a WebSocket."""
        own = self.tls_port if tls else self.port
        scheme = {(False, False): "amqp", (False, True): "amqps", (True, False): "ws", (True, True): "wss"}[web, tls]
        given = {"contentmode": contentmode, "credential": credential, "seconds": seconds, "scheme": scheme}
        return amqp.target(host, port or own, QUEUE, settings=settings, **given)

    def receiving(self) -> AbstractContextManager[Receiver]:
        return amqp.reading(self.port, QUEUE)

    def start(self) -> None:
        classpath = pathsep.join(map(str, self._jars))
        arguments = (self._folder, self.port, self.tls_port, USER, PASSWORD, self._store)
        with (self._folder / "said").open("ab") as output:
            self._process = subprocess.Popen(
                [self._java, *_OPTIONS, "-cp", classpath, _SOURCE, *map(str, arguments)],
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
            )
        process = self._process
        for port in (self.port, self.tls_port):
            wait_for_port(port, lambda: process.poll() is None, 60)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None

    def close(self) -> None:
        """Ends the broker and removes its files."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)


def _store(files: CertificateFiles) -> Path:
    """The server's key and certificate in a PKCS #12 file, for Java."""
    store = files.key.with_suffix(".p12")
    key = load_pem_private_key(files.key.read_bytes(), None)
    certificate = load_pem_x509_certificate(files.certificate.read_bytes())
    encryption = BestAvailableEncryption(b"changeit")
    store.write_bytes(pkcs12.serialize_key_and_certificates(b"server", key, certificate, None, encryption))  # type: ignore[arg-type]
    return store
