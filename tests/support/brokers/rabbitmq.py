"""RabbitMQ with its plugin for AMQP 1.0, in the foreground and in a temporary folder."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

import pytest

from annals.projections.subscriptions.contract import Credential, SinkTarget
from tests.support.brokers import amqp
from tests.support.brokers.certificates import issue_certificate
from tests.support.brokers.suite import GOOD, HOST, PASSWORD, USER, Broker, Receiver
from tests.support.ports import free_port, wait_for_port

#: A queue that the plugin creates at first use.
QUEUE: Final = "/queue/annals"

_MISSING: Final = "no RabbitMQ: apt-get install rabbitmq-server, or put rabbitmq-server on PATH"
#: Debian's wrapper on PATH changes the account and the folders; this is the script that it calls.
_SCRIPT: Final = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
_ACCOUNT: Final = "rabbitmq"

_CONFIGURATION: Final = """
listeners.tcp.1 = 127.0.0.1:{port}
listeners.ssl.1 = 127.0.0.1:{tls_port}
ssl_options.cacertfile = {files.ca}
ssl_options.certfile = {files.certificate}
ssl_options.keyfile = {files.key}
default_user = {user}
default_pass = {password}
log.console = true
log.file = false
"""


class RabbitMQ(Broker):
    """The broker, started by `start` and ended by `close`."""

    protocol = "AMQP"
    reconnects_after_timeout = False
    slow = 60.0

    def __init__(self) -> None:
        program = _SCRIPT if _SCRIPT.exists() else shutil.which("rabbitmq-server")
        if program is None:
            pytest.skip(_MISSING)
        self._program = Path(program)
        # Not below pytest's folder, which other accounts may not read.
        self._folder = Path(tempfile.mkdtemp(prefix="annals-rabbitmq-"))
        files = issue_certificate(self._folder / "tls", HOST)
        self.ca = files.ca
        self.port, self.tls_port, self._epmd_port, self._dist_port = (free_port() for _ in range(4))
        configuration = _CONFIGURATION.format(
            port=self.port, tls_port=self.tls_port, files=files, user=USER, password=PASSWORD
        )
        (self._folder / "rabbitmq.conf").write_text(configuration)
        (self._folder / "enabled_plugins").write_text("[rabbitmq_amqp1_0].\n")
        self._account: str | None = None
        if os.getuid() == 0:
            self._use_account()
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
        **settings: Any,
    ) -> SinkTarget:
        scheme, own = ("amqps", self.tls_port) if tls else ("amqp", self.port)
        given = {"contentmode": contentmode, "credential": credential, "seconds": seconds, "scheme": scheme}
        return amqp.target(host, port or own, QUEUE, settings=settings, **given)

    def receiving(self) -> AbstractContextManager[Receiver]:
        return amqp.reading(self.port, QUEUE)

    def start(self) -> None:
        with (self._folder / "said").open("ab") as output:
            self._process = subprocess.Popen(
                [self._program],
                cwd=self._folder,
                env=self._environment(),
                user=self._account,
                group=self._account,
                extra_groups=[] if self._account else None,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        process = self._process
        wait_for_port(self.tls_port, lambda: process.poll() is None, 60)
        wait_for_port(self.port, lambda: process.poll() is None, 60)

    def stop(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def close(self) -> None:
        """Ends the broker and removes its files."""
        self.stop()
        self._end_name_service()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _end_name_service(self) -> None:
        """Ends Erlang's name service, which outlives the broker, and refuses to end while the node is registered."""
        end = time.monotonic() + 10
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            while time.monotonic() < end:
                subprocess.run(["epmd", "-kill"], env=self._environment(), capture_output=True, check=False)
                socket.create_connection(("127.0.0.1", self._epmd_port), timeout=1).close()
                time.sleep(0.1)

    def _use_account(self) -> None:
        """Makes the account of RabbitMQ's package run the broker instead of root, and own the folder."""
        try:
            account = pwd.getpwnam(_ACCOUNT)
        except KeyError:
            return
        self._account = _ACCOUNT
        for place in (self._folder, *self._folder.rglob("*")):
            os.chown(place, account.pw_uid, account.pw_gid)

    def _environment(self) -> dict[str, str]:
        folder = str(self._folder)
        return {
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "HOME": folder,
            "RABBITMQ_NODENAME": f"annals{self.port}@localhost",
            "RABBITMQ_MNESIA_BASE": f"{folder}/mnesia",
            "RABBITMQ_LOG_BASE": f"{folder}/log",
            "RABBITMQ_PID_FILE": f"{folder}/pid",
            "RABBITMQ_CONFIG_FILE": f"{folder}/rabbitmq.conf",
            "RABBITMQ_CONF_ENV_FILE": f"{folder}/none",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{folder}/enabled_plugins",
            "RABBITMQ_DIST_PORT": str(self._dist_port),
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            # One scheduler: the machine is shared.
            "ERL_FLAGS": "+S 1:1",
        }
