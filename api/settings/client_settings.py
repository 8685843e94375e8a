"""Settings with which verbs connect to other systems: brokers, other registries, folders of segments."""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from annals.api.settings.settings import ENV_PREFIX, check_authorities, validated_by

_CONFIG: Final = SettingsConfigDict(
    env_prefix=ENV_PREFIX, env_file=".env", extra="ignore", frozen=True, hide_input_in_errors=True
)


class KafkaSettings(BaseSettings):
    """Credentials for brokers, and trusted authorities.

    Each field is `ANNALS_<FIELD>` in the environment and in `.env`.
    """

    model_config = _CONFIG

    kafka_username: str | None = Field(None, description="user of SASL PLAIN")
    kafka_password: SecretStr | None = Field(None, description="password of that user")
    kafka_token: SecretStr | None = Field(None, description="token of SASL OAUTHBEARER, in place of a user")
    kafka_ca: Annotated[str | None, validated_by(check_authorities)] = Field(
        None, description="path of a PEM file with additional certificate authorities for brokers"
    )


class ConsoleSettings(BaseSettings):
    """What verbs use where the option is missing. Each field is `ANNALS_<FIELD>`."""

    model_config = _CONFIG

    segments: str | None = Field(
        None, description="folder of the segments for `annals segments` and `annals rebuild`, in place of `--folder`"
    )
    token: SecretStr | None = Field(
        None,
        description="bearer token for the registry that `annals spark` or `annals log hash` reads, in place of "
        "`--token`; without one, it is that of `annals auth login`",
    )
    confluent_secret: SecretStr | None = Field(
        None,
        description="token, or with `--user` the password, of the other schema registry for `annals import "
        "--from-confluent` and `annals export --to-confluent`, in place of `--secret-file`",
    )
    link_secret: SecretStr | None = Field(
        None,
        description="token or password of the other registry for `annals replicate add`, in place of `--secret-file` "
        "and `--ask`",
    )
