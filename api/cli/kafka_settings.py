"""How `annals publish` and Spark reach Kafka: settings `ANNALS_KAFKA_...`, from the environment and `.env`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from api.cli.outcome import UsageError
from api.settings.settings import ENV_PREFIX
from domain.errors.http_errors import InvalidSubscription
from projections.kafka.cluster import CertificateAuthorities, InsecureCredential, KafkaCluster
from projections.outgoing import certificates
from projections.subscriptions.contract import Credential

#: What stands before brokers that are named without a scheme: no TLS.
_OPEN: Final = "kafka://"
#: What Java's client shows a name and a password with.
_PLAIN: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"


def _authorities(path: str | None) -> str | None:
    try:
        certificates.client_tls_context(CertificateAuthorities(path or ""))
    except OSError as error:  # what OpenSSL says is one too
        raise ValueError(f"{path} is no PEM file with certificates: {error.strerror or error}") from None
    return path


class KafkaSettings(BaseSettings):
    """What brokers are shown, and whom to believe. Each field is `ANNALS_<FIELD>` in the environment and in `.env`."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, env_file=".env", extra="ignore", frozen=True, hide_input_in_errors=True
    )

    kafka_username: str | None = Field(None, description="user of SASL PLAIN")
    kafka_password: SecretStr | None = Field(None, description="password of that user")
    kafka_token: SecretStr | None = Field(None, description="token of SASL OAUTHBEARER, in place of a user")
    kafka_ca: Annotated[str | None, AfterValidator(_authorities)] = Field(
        None, description="path of a PEM file with authorities that brokers' certificates may be of as well"
    )


def kafka_cluster(brokers: str) -> KafkaCluster:
    """The brokers of a command line, with the settings in force.

    brokers: `HOST:PORT`, several with commas; `SSL://` before them for TLS.
    Raises: UsageError where they cannot be brokers, or a credential would travel in the open.
    """
    settings = KafkaSettings()
    uri = brokers if "://" in brokers else _OPEN + brokers
    try:
        return KafkaCluster(uri, _credential(settings), CertificateAuthorities(settings.kafka_ca or ""))
    except InvalidSubscription as error:
        raise UsageError(f"--kafka {brokers}: {error.arguments['error_detail']}") from None
    except InsecureCredential as error:
        raise UsageError(f"--kafka {brokers}: {error}") from None


def spark_kafka_options(brokers: str) -> tuple[str, dict[str, str]]:
    """The brokers of a command line as Spark takes them, and the options of its source by the settings in force.

    Raises: UsageError, as `cluster` does, and for a token, which Java's client shows with a program of one's own only.
    """
    kafka_cluster(brokers)
    settings, (scheme, _, servers) = KafkaSettings(), brokers.rpartition("://")
    credential, tls = _credential(settings), "SSL" in scheme.upper()
    if credential is not None and credential.token:
        raise UsageError(
            "Spark shows brokers no ANNALS_KAFKA_TOKEN; set ANNALS_KAFKA_USERNAME and ANNALS_KAFKA_PASSWORD."
        )
    told = {"kafka.security.protocol": ("SASL_" if credential else "") + ("SSL" if tls else "PLAINTEXT")}
    if credential is not None:
        name, password = (_quoted(each) for each in (credential.identifier, credential.secret))
        told["kafka.sasl.mechanism"] = "PLAIN"
        told["kafka.sasl.jaas.config"] = f"{_PLAIN} required username={name} password={password};"
    if tls and settings.kafka_ca:
        # As text, because executors need not have the file. These authorities are then the only ones.
        told["kafka.ssl.truststore.type"] = "PEM"
        told["kafka.ssl.truststore.certificates"] = Path(settings.kafka_ca).read_text()
    return servers, told


def _quoted(text: str) -> str:
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
