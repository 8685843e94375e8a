"""Settings from flags, the environment (`ANNALS_...`) and `.env`, in this order of precedence."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Iterator
from typing import Annotated, Final, Literal, NamedTuple
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo
from pydantic_settings import BaseSettings, SettingsConfigDict
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from api.auth import callers, json_settings
from api.auth.jwt_keys import is_url
from api.compat.aliases import families_by_host
from api.http import cors
from api.http import trusted_proxies as proxies
from api.http.allowed_hosts import parse_hosts as host_names
from api.http.connection_limits import ConnectionLimits, HeadLimits
from api.http.limits import MAX_BODY
from api.settings.configured_links import parse_configured_links
from commands.store.secrets import parse_keys
from domain.compat.legacy_apis import LegacyApi
from domain.decisions.world import DomainValidation
from domain.values import xid as xids
from projections.entities.leaves import MAX_LEAVES
from projections.outgoing.allow_list import parse_allow_list

ENV_PREFIX: Final = "ANNALS_"
DEFAULT_HEAD_LIMITS: Final = HeadLimits()


def _database(url: str) -> str:
    try:
        known = _holds(make_url(url))
    except ArgumentError:
        known = False
    if not known:
        raise ValueError("a URL such as sqlite:///annals.db or postgresql://user:password@host/name is needed")
    return url


def _holds(url: URL) -> bool:
    # An in-memory SQLite would give each connection its own registry, which would end with the process.
    if url.get_backend_name() == "sqlite":
        return url.database not in (None, "", ":memory:")
    return url.get_backend_name() == "postgresql"


def _root(url: str | None) -> str | None:
    if url is None:
        return None
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment:
        raise ValueError("an absolute http or https URL without query or fragment is needed")
    return url.rstrip("/")


def _parsed(parse: Callable[[str], object]) -> AfterValidator:
    """A validator that refuses a text that cannot be parsed. The value of the setting is the text itself."""

    def check(text: str | None) -> str | None:
        if text:
            parse(text)
        return text or None

    return AfterValidator(check)


def _urls(text: str) -> tuple[str, ...]:
    return tuple(str(_root(part.strip())) for part in text.split(",") if part.strip())


def _id(text: str) -> str:
    if not xids.ID.match(text):
        raise ValueError("an id is needed: 1 to 128 of A-Z a-z 0-9 . _ ~ : @ - with a letter, a digit or _ first")
    return text


def _lower(given: object) -> object:
    return given.lower() if isinstance(given, str) else given


DEFAULT_PORT: Final = 8080
#: The address at which a server that listens on all addresses is reached.
_REACHED: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
#: Hosts that other machines cannot reach.
_OWN: Final = frozenset(("127.0.0.1", "::1", "localhost"))


def _plaintext(given: bool | None, info: ValidationInfo) -> bool:
    """SUB-905: by default only for a trial server, which is reachable from its own machine only and needs no tokens."""
    if given is not None:
        return given
    said = info.data
    hosts = (said.get("host"), urlsplit(said.get("public_url") or "http://localhost").hostname)
    return all(host in _OWN for host in hosts) and not (said.get("tokens") or said.get("jwt_keys"))


def _authorities(path: str) -> None:
    try:
        ssl.create_default_context(cafile=path)
    except OSError as error:  # errors of OpenSSL are OSErrors too
        raise ValueError(f"{path} is no PEM file with certificates: {error.strerror or error}") from None


def _dns_name(text: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?", text):
        raise ValueError("a DNS name is needed, such as registry.example.com")


def _hosts(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]", name):
            raise ValueError(f"{name} is no host name, such as schemas.example.com")
    return names


class Settings(BaseSettings):
    """The settings of one process. Each field is `ANNALS_<FIELD>` in the environment and in `.env`."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, env_file=".env", extra="ignore", frozen=True, hide_input_in_errors=True
    )

    database: Annotated[str, AfterValidator(_database)] = Field(
        "sqlite:///annals.db", description="URL of the store, SQLite or PostgreSQL"
    )
    host: str = Field("127.0.0.1", description="address that the server listens on")
    port: int = Field(DEFAULT_PORT, ge=0, le=65535, description="port that the server listens on; 0 takes a free one")
    public_url: Annotated[str | None, AfterValidator(_root)] = Field(
        None,
        description="root of the registry as clients see it; without it answers follow the Host header, and events name"
        " the address of the first start",
    )
    trusted_proxies: Annotated[str | None, _parsed(proxies.parse_networks)] = Field(
        None, description="addresses and networks of proxies whose forwarded headers are believed, with commas"
    )
    hosts: Annotated[str | None, _parsed(host_names)] = Field(
        None, description="further host names of the server, with commas: names, *.example.com, or * for all"
    )
    registries: Annotated[str | None, _parsed(_urls)] = Field(
        None, description="URLs of further registries that discovery names, with commas"
    )
    cors_origins: Annotated[str | None, _parsed(cors.parse_origins)] = Field(
        None, description="origins whose pages may use the registry, with commas; * for all"
    )
    check_workers: int = Field(2, ge=1, description="processes that check documents against their formats")
    check_seconds: float = Field(10, gt=0, description="seconds that checking one document may take")
    check_memory: int = Field(2048, ge=256, description="megabytes of memory that a process which checks may take")
    max_body: int = Field(MAX_BODY, ge=1, description="bytes that the body of a request may have")
    max_request_line: int = Field(
        DEFAULT_HEAD_LIMITS.request_line, ge=256, description="bytes that the request line may have"
    )
    max_header: int = Field(
        DEFAULT_HEAD_LIMITS.header, ge=256, description="bytes that one header may have, with its name"
    )
    max_headers: int = Field(DEFAULT_HEAD_LIMITS.headers, ge=8, description="headers that a request may have")
    max_headers_size: int = Field(
        DEFAULT_HEAD_LIMITS.headers_size, ge=256, description="bytes that all headers may have in all"
    )
    max_connections: int = Field(1024, ge=1, description="connections that clients may have at the same time")
    header_seconds: float = Field(20, gt=0, description="seconds in which a request line and its headers must arrive")
    body_seconds: float = Field(30, gt=0, description="seconds in which a body must arrive, with those of body_rate")
    body_rate: int = Field(1024, ge=1, description="bytes of a body that give it one second more to arrive")
    keepalive_seconds: int = Field(5, ge=1, description="seconds for which a connection without a request stays open")
    compat_body: int = Field(
        1 << 20, ge=1, description="bytes that the body of a request to the older APIs below /compat may have"
    )
    compat_schemaregistry_hosts: Annotated[str | None, _parsed(_hosts)] = Field(
        None, description="host names that serve Schema Registry 0.2 at their root and nothing else, with commas"
    )
    compat_messagecatalog_hosts: Annotated[str | None, _parsed(_hosts)] = Field(
        None, description="host names that serve Message Catalog 0.1 at their root and nothing else, with commas"
    )
    inbound: bool = Field(True, description="whether the older APIs take in what other registries are the authority of")
    indexed_leaves: int = Field(
        MAX_LEAVES,
        ge=100,
        description="scalar values of one entity that filters find by index; one with more is read whole",
    )
    pagelimit: int = Field(
        0, ge=0, description="members that one answer about a collection has at most; 0 for any number"
    )
    max_inlined: int = Field(
        0, ge=0, description="entities that an answer with inline has at most; 0 for any number, they are streamed"
    )
    tokens: Annotated[str | None, _parsed(callers.parse_fixed_tokens)] = Field(
        None, description="callers by bearer token: JSON, or the path of a JSON file; without, everybody may write"
    )
    jwt_keys: Annotated[str | None, _parsed(is_url)] = Field(
        None, description="keys of who issues JWTs: path of a JWKS file, or a URL with https or on this machine"
    )
    jwt_issuer: str | None = Field(None, description="`iss` that JWTs have to have")
    jwt_audience: str | None = Field(None, description="`aud` that JWTs have to have")
    jwt_role_claim: str = Field("role", description="claim with the caller's role; dots lead into objects")
    jwt_groups_claim: str = Field("xregistry_groups", description="claim with further roles by the xid of a Group")
    event_changes: bool = Field(True, description="whether events say which attributes have changed")
    domain_validation: DomainValidation = Field(
        "warn", description="rules of endpoints and messages beyond the model: off, warn (counted), strict (refused)"
    )
    master_key: Annotated[str | None, _parsed(parse_keys)] = Field(
        None, description="keys that seal secrets: base64 of 32 bytes each, with commas, the newest first"
    )
    master_key_file: Annotated[str | None, _parsed(lambda path: parse_keys(json_settings.read_file(path)))] = Field(
        None, description="path of a file with such keys, with commas or on lines of their own"
    )
    subscriptions_endpoint: Annotated[str | None, _parsed(_id)] = Field(
        None, description="id of the endpoint as which the registry makes its subscriptions known"
    )
    subscriptions_owned: int = Field(1000, ge=0, description="subscriptions that one caller may have")
    subscriptions_filters: int = Field(20, ge=1, description="filters that one subscription may have")
    subscriptions_body: int = Field(65536, ge=1, description="bytes that the body of a subscription may have")
    sinks_allow: Annotated[str | None, _parsed(parse_allow_list)] = Field(
        None,
        description="private addresses and low ports that events and links may go to: host|CIDR[:port], with commas",
    )
    sinks_plaintext: Annotated[bool | None, AfterValidator(_plaintext)] = Field(
        None, description="whether events may go without TLS; by default while only this machine can reach the server"
    )
    sinks_ca: Annotated[str | None, _parsed(_authorities)] = Field(
        None, description="path of a PEM file with authorities that certificates of sinks and links may be of as well"
    )
    sinks_validation: Literal["required", "optional", "off"] = Field(
        "optional", description="whether webhooks have to consent: without consent nothing, or ten requests a minute"
    )
    sinks_origin: Annotated[str | None, _parsed(_dns_name)] = Field(
        None, description="DNS name that sinks are told who sends; by default the host of the public URL"
    )
    links: Annotated[str | None, _parsed(parse_configured_links)] = Field(
        None, description="replication links that are there from the start: JSON by id, or the path of a JSON file"
    )
    registryid: Annotated[str, AfterValidator(_id)] = Field(
        "annals", description="registryid that a new store gets; an existing one keeps its own"
    )
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower)] = Field(
        "info", description="least level of log lines: debug, info, warning, error"
    )

    @property
    def master_keys(self) -> tuple[bytes, ...]:
        """The keys in `master_key`, or else those in the file."""
        text = self.master_key or (json_settings.read_file(self.master_key_file) if self.master_key_file else "")
        return parse_keys(text) if text else ()

    @property
    def connection_limits(self) -> ConnectionLimits:
        """The limits for connections of clients."""
        head = HeadLimits(self.max_request_line, self.max_header, self.max_headers, self.max_headers_size)
        return ConnectionLimits(head, self.max_connections, self.header_seconds, self.body_seconds, self.body_rate)

    @property
    def origin(self) -> str:
        """The name of the sender that sinks see (`WebHook-Request-Origin`)."""
        return self.sinks_origin or urlsplit(self.public_url or "").hostname or "localhost"

    @property
    def compat_hosts(self) -> dict[str, LegacyApi]:
        """The legacy APIs by the host names that serve only them."""
        return families_by_host(
            _hosts(self.compat_schemaregistry_hosts or ""), _hosts(self.compat_messagecatalog_hosts or "")
        )

    @property
    def own_hosts(self) -> tuple[str, ...] | None:
        """The host names that the server accepts; None to accept any (ACC-87)."""
        checked = self.hosts or self.public_url or not (self.tokens or self.jwt_keys)
        public = urlsplit(self.public_url or "").hostname
        own = (name for name in (self.host, public) if name)
        return (*own, *self.compat_hosts, *host_names(self.hosts or "")) if checked else None

    @property
    def other_registries(self) -> tuple[str, ...]:
        """The URLs in `registries`."""
        return _urls(self.registries or "")


def server_url(settings: Settings, port: int = 0) -> str:
    """The URL at which this machine reaches the server. port: the port that the server listens on."""
    host = _REACHED.get(settings.host, settings.host)
    at = port or settings.port or DEFAULT_PORT
    return f"http://[{host}]:{at}" if ":" in host else f"http://{host}:{at}"


class SettingValue(NamedTuple):
    """One setting as it may be shown."""

    name: str
    value: str
    description: str


def list_settings(settings: BaseSettings) -> Iterator[SettingValue]:
    """Every setting under its environment name, with passwords hidden."""
    for name, field in type(settings).model_fields.items():
        value = getattr(settings, name)
        text = "" if value is None else _HIDDEN.get(name, str)(value)
        yield SettingValue(ENV_PREFIX + name.upper(), text, field.description or "")


def mask_password(database: str) -> str:
    """A database URL with `***` in place of its password, in the user part and in the query."""
    url = make_url(database)
    secrets = {name: "***" for name in url.query if "password" in name.lower()}
    return url.update_query_dict(secrets).render_as_string(hide_password=True).replace("%2A", "*")


def _without_secrets(setting: str) -> str:
    return "***" if json_settings.is_inline_json(setting) else setting


_HIDDEN: Final[dict[str, Callable[[str], str]]] = {
    "database": mask_password,
    "tokens": _without_secrets,
    "links": _without_secrets,
    "master_key": lambda _: "***",
}
