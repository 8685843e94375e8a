"""`annals publish`: its output, its exit codes, and connections to brokers with TLS and authentication."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from annals.api.cli.progress import LINE_SECONDS
from tests.support.brokers.kafka import READER, Kafka, all_records, kafka, next_records, token, topic_consumer
from tests.support.brokers.suite import HOST, PASSWORD, USER, WRONG
from tests.support.console import Annals
from tests.support.ports import free_port
from tests.support.serving import environment

#: A broker takes a few seconds to start, and many more on a busy machine.
pytestmark = [pytest.mark.uses("Kafka"), pytest.mark.timeout(300)]

SCHEMA = {"versions": {"1": {"format": "JsonSchema/draft-07", "schema": {"type": "object"}}}}


@pytest.fixture(scope="module")
def broker() -> Iterator[Kafka]:
    with kafka() as running:
        yield running


@pytest.fixture
def store(annals: Annals, folder: Path, store_url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a store with one schema: 3 events of its creation, 4 of the import."""
    monkeypatch.setenv("ANNALS_DATABASE", store_url)
    (folder / "registry.json").write_text(json.dumps({"schemagroups": {"g": {"schemas": {"s": SCHEMA}}}}))
    assert annals("import", folder / "registry.json").code == 0
    return store_url


@pytest.fixture
def resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    """Resolves the host name of the broker's certificate to this machine."""
    resolve = socket.getaddrinfo

    def resolve_locally(host: Any, *arguments: Any, **options: Any) -> Any:
        return resolve("127.0.0.1" if host == HOST else host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve_locally)


def test_once(annals: Annals, store: str, broker: Kafka) -> None:
    broker.fresh()
    for _ in range(2):  # the second run publishes nothing
        ended = annals("publish", "--kafka", broker.own(), "--prefix", f"{broker.topic}-once", "--once")
        assert ended == (0, f"position 7: 7 records on {broker.topic}-once.log, 4 on {broker.topic}-once.events\n", "")


def test_topics(annals: Annals, store: str, broker: Kafka) -> None:
    broker.fresh()
    prefix = f"{broker.topic}-topics"
    ended = annals(
        *("publish", "--kafka", broker.own(), "--prefix", prefix, "--once"),
        *("--topics", "events.schemaregistry, entities", "--no-schemas"),
    )
    counts = f"3 records on {prefix}.events.schemaregistry, 7 on {prefix}.entities"
    assert ended == (0, f"position 7: {counts}\n", "")
    [first, *_] = all_records(broker.own(), f"{prefix}.entities")
    assert json.loads(first.value).keys() == {
        "before",
        "after",
        "source",
        "transaction",
        "op",
        "ts_ms",
        "ts_us",
        "ts_ns",
    }


def test_its_progress(annals: Annals, store: str, broker: Kafka, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.fresh()
    monkeypatch.setenv(LINE_SECONDS, "0")
    ended = annals("publish", "--kafka", broker.own(), "--prefix", f"{broker.topic}-counted", "--once")
    assert ended.err == "annals: published 7 of 7 events\n"


def test_it_follows_until_sigterm(store: str, broker: Kafka, folder: Path) -> None:
    broker.fresh()
    prefix = f"{broker.topic}-follow"
    command = [sys.executable, "-m", "annals", "publish", "--kafka", broker.own(), "--prefix", prefix]
    broker.make(f"{prefix}.events", 2)  # an existing topic is used as it is
    with subprocess.Popen(
        command, cwd=folder, env=environment(ANNALS_DATABASE=store), stdout=subprocess.PIPE, text=True
    ) as process:
        with topic_consumer(broker.own(), f"{prefix}.events") as consumer:
            assert len(next_records(consumer, 4, 60)) == 4
        process.send_signal(signal.SIGTERM)
        printed, _ = process.communicate(timeout=60)
    assert (process.returncode, printed) == (0, f"position 7: 7 records on {prefix}.log, 4 on {prefix}.events\n")


def test_through_tls_with_a_password_or_a_token(
    annals: Annals, store: str, broker: Kafka, resolved: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANNALS_KAFKA_CA", str(broker.ca))
    cases: dict[str, dict[str, str]] = {
        "TLS": {},
        "SASLTLS": {"USERNAME": USER, "PASSWORD": PASSWORD},
        "SASLTLS ": {"TOKEN": token(USER)},
    }
    for number, (listener, settings) in enumerate(cases.items()):
        with monkeypatch.context() as patch:
            for name, value in settings.items():
                patch.setenv(f"ANNALS_KAFKA_{name}", value)
            at = f"SSL://{HOST}:{broker.ports[listener.strip()]}"
            ended = annals("publish", "--kafka", at, "--prefix", f"tls-{number}-{free_port()}", "--once")
            assert ended.code == 0, ended.err


@pytest.mark.parametrize(
    ("settings", "code", "said"),
    [
        ({"USERNAME": USER, "PASSWORD": WRONG}, 2, "ANNALS_KAFKA_USERNAME"),
        ({"USERNAME": READER.identifier, "PASSWORD": READER.secret}, 2, "authorization"),
    ],
)
def test_users_who_may_not(
    annals: Annals,
    store: str,
    broker: Kafka,
    resolved: None,
    monkeypatch: pytest.MonkeyPatch,
    settings: dict[str, str],
    code: int,
    said: str,
) -> None:
    monkeypatch.setenv("ANNALS_KAFKA_CA", str(broker.ca))
    for name, value in settings.items():
        monkeypatch.setenv(f"ANNALS_KAFKA_{name}", value)
    ended = annals("publish", "--kafka", f"SSL://{HOST}:{broker.ports['SASLTLS']}", "--prefix", "denied", "--once")
    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err
    assert settings["PASSWORD"] not in ended.err


def test_an_untrusted_certificate_is_refused(annals: Annals, store: str, broker: Kafka, resolved: None) -> None:
    ended = annals("publish", "--kafka", f"SSL://{HOST}:{broker.ports['TLS']}", "--once")
    assert ended.code == 3
    assert ended.err.startswith("annals: Kafka: tls ")


@pytest.mark.parametrize(
    ("arguments", "settings", "said"),
    [
        (["--kafka", "http://127.0.0.1:9092"], {}, "KAFKA takes URIs with"),
        (["--kafka", "127.0.0.1:0"], {}, "the port is not from 1 to 65535"),
        (["--kafka", "127.0.0.1:9092", "--prefix", "with space"], {}, "--prefix"),
        (["--kafka", "127.0.0.1:9092", "--topics", "log,event"], {}, "--topics: 'event' is none of log, events, "),
        (["--kafka", "192.0.2.1:9092"], {"USERNAME": "u"}, "credentials are sent over TLS only"),
        (["--kafka", "127.0.0.1:9092"], {"CA": "nowhere.pem"}, "ANNALS_KAFKA_CA: nowhere.pem is not a PEM file"),
    ],
)
def test_wrong_usage(
    annals: Annals, monkeypatch: pytest.MonkeyPatch, arguments: list[str], settings: dict[str, str], said: str
) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(f"ANNALS_KAFKA_{name}", value)
    ended = annals("publish", "--once", *arguments)
    assert (ended.code, ended.out) == (2, "")
    assert said in ended.err


def test_no_store(annals: Annals) -> None:
    ended = annals("publish", "--kafka", "127.0.0.1:9092", "--once")
    assert (ended.code, ended.out) == (3, "")
    assert "there is no store" in ended.err


def test_a_broker_that_is_away(store: str, folder: Path) -> None:
    # each line says where nothing answers, and the last one that nothing was published
    server = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "annals", "publish", "--kafka", server]
    with subprocess.Popen(
        command,
        cwd=folder,
        env=environment(ANNALS_DATABASE=store),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        printed, _ = process.communicate(timeout=60)
    said = f"annals: Kafka at {server} cannot be used: ECONNREFUSED Connection refused; trying again\n"
    assert (line, process.returncode) == (said, 0)
    assert printed == "nothing is published: the brokers were not reached\n"


@pytest.mark.long
def test_no_broker(annals: Annals, store: str) -> None:
    ended = annals("publish", "--kafka", f"127.0.0.1:{free_port()}", "--once")
    assert (ended.code, ended.out) == (3, "")
    assert ended.err.startswith("annals: Kafka: ECONNREFUSED ")


def test_topics_of_another_registry(annals: Annals, store: str, broker: Kafka, folder: Path) -> None:
    broker.fresh()
    prefix = f"{broker.topic}-two"
    assert annals("publish", "--kafka", broker.own(), "--prefix", prefix, "--once").code == 0
    other = ("--database", f"sqlite:///{folder / 'other.db'}")
    assert annals("import", folder / "registry.json", *other).code == 0
    ended = annals("publish", "--kafka", broker.own(), "--prefix", prefix, "--once", *other)
    assert (ended.code, ended.out) == (1, "")
    assert f"at position 7 the topic {prefix}.log holds another interaction than the log" in ended.err


_SIGNAL_IN_A_WAIT: Final = """
import os, signal
from annals.api.cli.stop_signals import stop_event

with stop_event() as stop:
    with stop._cond:  # as `wait` holds it when it begins and when it ends
        os.kill(os.getpid(), signal.SIGTERM)
    print(stop.wait(20))
"""


def test_a_signal_that_arrives_as_a_wait_begins(folder: Path) -> None:
    """The handler does not take the lock that the interrupted wait holds, which would be a deadlock."""
    command = [sys.executable, "-c", _SIGNAL_IN_A_WAIT]
    ended = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "True\n", "")
