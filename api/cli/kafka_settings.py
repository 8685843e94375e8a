"""Connections to Kafka with the settings `ANNALS_KAFKA_...`, for `annals publish` and Spark."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from annals.api.cli.outcome import UsageError
from annals.api.settings.client_settings import KafkaSettings
from annals.domain.errors.http_errors import InvalidSubscription
from annals.projections.kafka.cluster import CertificateAuthorities, InsecureCredential, KafkaCluster
from annals.projections.subscriptions.contract import Credential

#: Scheme for brokers that are named without one: no TLS.
_PLAINTEXT_SCHEME: Final = "kafka://"
#: The login module with which the Java client sends a name and a password.
_PLAIN_LOGIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"


def kafka_cluster(brokers: str) -> KafkaCluster:
    """The brokers of a command line, with the settings in force.

    brokers: `HOST:PORT`, comma-separated; `SSL://` before them for TLS. Raises: UsageError if they are invalid, or if a
    credential would be sent unencrypted.
    """
    settings = KafkaSettings()
    uri = brokers if "://" in brokers else _PLAINTEXT_SCHEME + brokers
    try:
        return KafkaCluster(uri, _credential(settings), CertificateAuthorities(settings.kafka_ca or ""))
    except InvalidSubscription as error:
        raise UsageError(f"--kafka {brokers}: {error.arguments['error_detail']}") from None
    except InsecureCredential as error:
        raise UsageError(f"--kafka {brokers}: {error}") from None


def spark_kafka_options(brokers: str) -> tuple[str, dict[str, str]]:
    """The brokers of a command line as Spark expects them, and the options of its Kafka source from the settings.

    Raises: UsageError, as `kafka_cluster` does; also for a token, because the Java client needs custom code to send
    one.
    """
    kafka_cluster(brokers)
    settings, (scheme, _, servers) = KafkaSettings(), brokers.rpartition("://")
    credential, is_tls = _credential(settings), "SSL" in scheme.upper()
    if credential is not None and credential.token:
        raise UsageError(
            "Spark cannot send ANNALS_KAFKA_TOKEN to brokers; set ANNALS_KAFKA_USERNAME and ANNALS_KAFKA_PASSWORD."
        )
    options = {"kafka.security.protocol": ("SASL_" if credential else "") + ("SSL" if is_tls else "PLAINTEXT")}
    if credential is not None:
        name, password = (_quote(text) for text in (credential.identifier, credential.secret))
        options["kafka.sasl.mechanism"] = "PLAIN"
        options["kafka.sasl.jaas.config"] = f"{_PLAIN_LOGIN_MODULE} required username={name} password={password};"
    if is_tls and settings.kafka_ca:
        # As text, because executors may not have the file. With it, only these authorities are trusted.
        options["kafka.ssl.truststore.type"] = "PEM"
        options["kafka.ssl.truststore.certificates"] = Path(settings.kafka_ca).read_text()
    return servers, options


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _credential(settings: KafkaSettings) -> Credential | None:
    if settings.kafka_token:
        return Credential("ACCESSTOKEN", token=settings.kafka_token.get_secret_value())
    if settings.kafka_username:
        password = settings.kafka_password
        return Credential(
            "PLAIN", identifier=settings.kafka_username, secret=password.get_secret_value() if password else ""
        )
    return None
