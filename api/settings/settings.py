"""Settings from flags, the environment (`ANNALS_...`) and `.env`, in this order of precedence."""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable
from ipaddress import ip_address
from typing import Annotated, Any, Final, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, PrivateAttr, ValidationInfo
from pydantic_settings import BaseSettings, SettingsConfigDict
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from annals.api.auth import json_settings
from annals.api.auth.auth_settings import AuthSettings
from annals.api.auth.basic import parse_passwords
from annals.api.auth.certificates import parse_clients
from annals.api.auth.jwt_claims import ClaimSettings
from annals.api.auth.jwt_keys import is_url
from annals.api.auth.oidc.oidc_settings import OidcSettings
from annals.api.auth.sessions.session_settings import SessionSettings
from annals.api.auth.tokens import parse_fixed_tokens
from annals.api.compat.aliases import CanonicalPath, canonical_paths
from annals.api.http.access_log.line_rate import AUTO_LIMIT, AccessLogMode
from annals.api.http.browsers import cors
from annals.api.http.browsers.allowed_hosts import host_name, parse_hosts
from annals.api.http.connections import trusted_proxies as proxies
from annals.api.http.connections.connection_limits import ConnectionLimits, HeadLimits
from annals.api.http.connections.tls import TlsFiles
from annals.api.http.limits import MAX_BODY
from annals.api.settings.configured_links import parse_configured_links
from annals.commands.store.database.postgresql_hosts import with_host_list
from annals.commands.store.master_keys import parse_keys
from annals.domain.confluent.settings import LEVELS
from annals.domain.decisions.world import DomainValidation
from annals.domain.replication.foreign_interaction import MAX_INTERACTION_BYTES
from annals.domain.values import xid as xids
from annals.projections.entities.leaves import MAX_LEAVES
from annals.projections.outgoing.allow_list import parse_allow_list

ENV_PREFIX: Final = "ANNALS_"
#: A day, and a petabyte in megabytes: more than any check needs. The timers and limits of processes hold no more.
_MAX_CHECK_SECONDS: Final = 86_400
_MAX_CHECK_MEMORY: Final = 1 << 30
LogFormat = Literal["console", "json"]
DEFAULT_HEAD_LIMITS: Final = HeadLimits()


def _validate_database(url: str) -> str:
    try:
        url = with_host_list(url)
        is_known = _is_supported(make_url(url))
    except ArgumentError:
        is_known = False
    if not is_known:
        raise ValueError("a URL such as sqlite:///annals.db or postgresql://user:password@host/name is needed")
    return url


def _is_supported(url: URL) -> bool:
    # An in-memory SQLite would give each connection its own registry, which would end with the process.
    # SQLite takes options such as `mode` from a URI only, and the driver ignores them elsewhere.
    if url.get_backend_name() == "sqlite":
        return url.database not in (None, "", ":memory:") and (not url.query or "uri" in url.query)
    return url.get_backend_name() == "postgresql"


def _validate_root(url: str | None) -> str | None:
    if url is None:
        return None
    url_parts = urlsplit(url)
    if url_parts.scheme not in ("http", "https") or not url_parts.netloc or url_parts.query or url_parts.fragment:
        raise ValueError("an absolute http or https URL without query or fragment is needed")
    return url.rstrip("/")


def validated_by(parse: Callable[[str], object]) -> AfterValidator:
    """A validator that refuses a text that cannot be parsed. The value of the setting is the text itself."""

    def check(text: str | None) -> str | None:
        if text:
            parse(text)
        return text or None

    return AfterValidator(check)


def _parse_urls(text: str) -> tuple[str, ...]:
    return tuple(str(_validate_root(part.strip())) for part in text.split(",") if part.strip())


def _validate_id(text: str) -> str:
    if not xids.ID.match(text):
        raise ValueError("an id is needed: 1 to 128 of A-Z a-z 0-9 . _ ~ : @ - with a letter, a digit or _ first")
    return text


def _validate_level(text: str) -> str:
    if text.upper() not in LEVELS:
        raise ValueError(f"one of {', '.join(LEVELS)} is needed")
    return text.upper()


def _lower_case(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


DEFAULT_PORT: Final = 8080
#: The address at which a server that listens on all addresses is reached.
_REACHABLE_HOSTS: Final = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
#: The settings that turn an authenticator on.
AUTHENTICATOR_FIELDS: Final = ("tokens", "jwt_keys", "basic_file", "tls_clients", "api_keys", "oidc_issuer")
#: Hosts that other machines cannot reach.
_LOOPBACK_HOSTS: Final = frozenset(("127.0.0.1", "::1", "localhost"))


def _default_plaintext(value: bool | None, info: ValidationInfo) -> bool:
    """SUB-905: by default only for a trial server, which is reachable from its own machine only and needs no tokens."""
    if value is not None:
        return value
    other_settings = info.data
    hosts = (other_settings.get("host"), urlsplit(other_settings.get("public_url") or "http://localhost").hostname)
    return all(host in _LOOPBACK_HOSTS for host in hosts) and not any(map(other_settings.get, AUTHENTICATOR_FIELDS))


def check_authorities(path: str) -> None:
    """Checks a file with certificate authorities. Raises: ValueError if it has none."""
    try:
        ssl.create_default_context(cafile=path)
    except OSError as error:  # errors of OpenSSL are OSErrors too
        raise ValueError(f"{path} is not a PEM file with certificates: {error.strerror or error}") from None


def _check_issuer(url: str) -> None:
    if not is_url(url) or urlsplit(url).query or urlsplit(url).fragment:
        raise ValueError("an https URL without query or fragment is needed, or an http URL of this machine")


def _check_scopes(text: str) -> None:
    if "openid" not in text.split():
        raise ValueError('the scope "openid" is needed')


def _check_dns_name(text: str) -> None:
    if not re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?", text):
        raise ValueError("a DNS name is needed, such as registry.example.com")


def _parse_hosts(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\]", name):
            raise ValueError(f"{name} is not a host name such as schemas.example.com")
    return names


_COMPAT_HOSTS: Final = ("compat_schemaregistry_hosts", "compat_messagecatalog_hosts", "compat_confluent_hosts")


def _check_unique_hosts(text: str | None, info: ValidationInfo) -> str | None:
    """LEG-104: a host name serves one API, so the name of the registry and those of the other lists are taken."""
    other_settings = info.data
    settings_by_host = {host_name(urlsplit(other_settings.get("public_url") or "").netloc): "public_url"}
    for field in _COMPAT_HOSTS:
        settings_by_host |= {name.lower(): field for name in _parse_hosts(other_settings.get(field) or "")}
    for name in _parse_hosts(text or ""):
        if other := settings_by_host.get(name.lower()):
            raise ValueError(f"{name} is in {ENV_PREFIX}{other.upper()} too; a host name serves one API at its root")
    return text


_HostNames = Annotated[str | None, validated_by(_parse_hosts), AfterValidator(_check_unique_hosts)]


class Settings(BaseSettings):
    """The settings of one process. Each field is `ANNALS_<FIELD>` in the environment and in `.env`."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX, env_file=".env", extra="ignore", frozen=True, hide_input_in_errors=True
    )
    _flags: frozenset[str] = PrivateAttr(frozenset())

    def __init__(self, **flags: Any) -> None:
        super().__init__(**flags)
        self._flags = frozenset(flags)

    @property
    def flags(self) -> frozenset[str]:
        """The fields whose values come from flags of the command."""
        return self._flags

    database: Annotated[str, AfterValidator(_validate_database)] = Field(
        "sqlite:///annals.db", description="the store: `sqlite:///FILE` or `postgresql://user:password@host/name`"
    )
    host: str = Field("127.0.0.1", description="address to listen on")
    port: int = Field(DEFAULT_PORT, ge=0, le=65535, description="port to listen on; 0 selects a free one")
    workers: int = Field(
        1, ge=1, le=64, description="number of processes that serve the registry, all on one port of this machine"
    )
    public_url: Annotated[str | None, AfterValidator(_validate_root)] = Field(
        None,
        description="root URL of the registry as clients see it; if unset, answers use the Host header, and events "
        "name the address of the first start",
    )
    trusted_proxies: Annotated[str | None, validated_by(proxies.parse_networks)] = Field(
        None,
        description="addresses and networks of proxies whose headers `Forwarded`, `X-Forwarded-*` and `Client-Cert` "
        "are trusted, comma-separated",
    )
    hosts: Annotated[str | None, validated_by(parse_hosts)] = Field(
        None,
        description="additional host names that clients use for the server, comma-separated: names, `*.example.com`, "
        "or `*` for all",
    )
    registries: Annotated[str | None, validated_by(_parse_urls)] = Field(
        None, description="URLs of other registries that discovery lists, comma-separated"
    )
    cors_origins: Annotated[str | None, validated_by(cors.parse_origins)] = Field(
        None, description="origins whose pages may use the registry, comma-separated; `*` for all"
    )
    check_workers: int = Field(2, ge=1, description="number of processes that check documents against their formats")
    check_seconds: float = Field(
        10, gt=0, le=_MAX_CHECK_SECONDS, description="time limit for the check of one document, in seconds"
    )
    check_memory: int = Field(
        2048, ge=256, le=_MAX_CHECK_MEMORY, description="memory limit of a checking process, in megabytes"
    )
    max_body: int = Field(MAX_BODY, ge=1, description="maximum size of a request body, in bytes")
    max_request_line: int = Field(
        DEFAULT_HEAD_LIMITS.request_line,
        ge=256,
        description="maximum size of the request line, in bytes; beyond it, 414",
    )
    max_header: int = Field(
        DEFAULT_HEAD_LIMITS.header,
        ge=256,
        description="maximum size of one header with its name, in bytes; beyond it, 431",
    )
    max_headers: int = Field(
        DEFAULT_HEAD_LIMITS.headers, ge=8, description="maximum number of headers of a request; beyond it, 431"
    )
    max_headers_size: int = Field(
        DEFAULT_HEAD_LIMITS.headers_size,
        ge=256,
        description="maximum size of all headers of a request, in bytes; beyond it, 431",
    )
    max_connections: int = Field(
        1024,
        ge=1,
        description="maximum number of simultaneous client connections; beyond it, 503. With TLS, 128 more may be in "
        "their handshake; connections beyond these end without a status",
    )
    header_seconds: float = Field(
        20,
        gt=0,
        description="seconds in which the request line and the headers must arrive, and seconds for a TLS handshake, "
        "which ends without a status",
    )
    body_seconds: float = Field(
        30,
        gt=0,
        description="seconds in which a body must arrive, plus one for each ANNALS_BODY_RATE bytes that arrive",
    )
    body_rate: int = Field(1024, ge=1, description="minimum rate of a slow body, in bytes per second")
    keepalive_seconds: int = Field(
        75, ge=1, description="seconds for which a connection stays open between two requests"
    )
    waitfor_seconds: float = Field(
        5, ge=0, le=300, description="maximum time that a read with `?waitfor=POSITION` waits, in seconds"
    )
    compat_body: int = Field(
        1 << 20, ge=1, description="maximum size of a request body of the legacy APIs below `/compat`, in bytes"
    )
    confluent_port: int | None = Field(
        None,
        ge=0,
        le=65535,
        description="additional port on which Confluent's API is at the root, such as 8081; 0 selects a free one;"
        " none if unset",
    )
    confluent_group: Annotated[str, AfterValidator(_validate_id)] = Field(
        "default", description="id of the Group of schemas that is the default context of Confluent's API"
    )
    confluent_compatibility: Annotated[str, AfterValidator(_validate_level)] = Field(
        "BACKWARD",
        description="compatibility level of subjects in Confluent's API where none is set: `NONE`, `BACKWARD`, "
        "`FORWARD` or `FULL`, the last three also with `_TRANSITIVE`",
    )
    compat_schemaregistry_hosts: _HostNames = Field(
        None, description="host names that serve only Schema Registry 0.2, at their root, comma-separated"
    )
    compat_messagecatalog_hosts: _HostNames = Field(
        None, description="host names that serve only Message Catalog 0.1, at their root, comma-separated"
    )
    compat_confluent_hosts: _HostNames = Field(
        None, description="host names that serve only Confluent's API, at their root, comma-separated"
    )
    inbound: bool = Field(
        True, description="whether the legacy APIs accept schemas and definitions whose authority is another registry"
    )
    indexed_leaves: int = Field(
        MAX_LEAVES,
        ge=100,
        description="maximum number of scalar values of one entity in the filter index; filters read an entity with "
        "more values completely",
    )
    pagelimit: int = Field(
        0, ge=0, description="maximum number of members in one answer about a collection; 0 for no limit"
    )
    max_inlined: int = Field(
        0,
        ge=0,
        description="maximum number of entities in an answer with `inline`; 0 for no limit, because answers are "
        "streamed",
    )
    open: bool = Field(
        False, description="whether the server may listen beyond its own machine without any authenticator"
    )
    read_only_anonymous: bool = Field(False, description="whether callers without a credential may read, and only read")
    tokens: Annotated[str | None, validated_by(parse_fixed_tokens)] = Field(
        None, description="callers by bearer token: JSON, or the path of a JSON file"
    )
    basic_file: Annotated[str | None, validated_by(parse_passwords)] = Field(
        None, description="path of a JSON file with names and hashes of passwords; `annals passwd` prints entries"
    )
    tls_cert: str | None = Field(
        None, description="path of a PEM file with the certificate of the server and those that lead to its authority"
    )
    tls_key: str | None = Field(
        None, description="path of a PEM file with the key of that certificate; if unset, it is in the same file"
    )
    tls_client_ca: str | None = Field(
        None, description="path of a PEM file with the authorities of the certificates that clients may send"
    )
    tls_clients: Annotated[str | None, validated_by(parse_clients)] = Field(
        None, description="path of a JSON file with callers by the subject or an alternative name of a certificate"
    )
    jwt_keys: Annotated[str | None, validated_by(is_url)] = Field(
        None,
        description="keys of the issuer of JWTs: the path of a JWKS file, an https URL, or an http URL of this machine",
    )
    jwt_issuer: str | None = Field(None, description="required `iss` of JWTs")
    jwt_audience: str | None = Field(None, description="required `aud` of JWTs")
    jwt_name_claim: str = Field("sub", description="claim with the name of the caller; dots select members of objects")
    jwt_role_claim: str = Field("role", description="claim with the role of the caller; dots select members of objects")
    jwt_groups_claim: str = Field("xregistry_groups", description="claim with additional roles by the xid of a Group")
    jwt_member_claim: str = Field("groups", description="claim with words that grants can name, such as teams")
    api_keys: bool = Field(False, description="accept API keys, which `annals keys` and `/-/keys` make")
    oidc_issuer: Annotated[str | None, validated_by(_check_issuer)] = Field(
        None,
        description="URL of the provider of OpenID Connect that people sign in at; its redirect URI is "
        "`<ANNALS_PUBLIC_URL>/ui/login/callback`",
    )
    oidc_client_id: str | None = Field(None, description="id of this server at the provider")
    oidc_cli_client_id: str | None = Field(
        None,
        description="id of the command line at the provider, for which `annals auth login` gets tokens; the server "
        "accepts the provider's ID tokens for it",
    )
    oidc_client_secret_file: Annotated[str | None, validated_by(json_settings.read_file)] = Field(
        None, description="path of a file with the secret of this server at the provider; unset for a public client"
    )
    oidc_scopes: Annotated[str, validated_by(_check_scopes)] = Field(
        "openid profile", description="scopes that the server asks the provider for, separated by spaces"
    )
    oidc_name: str = Field("", description="name of the provider on the page of sign-in; if unset, its host")
    session_idle: int = Field(
        28_800, ge=1, description="seconds without a request after which the session of a browser ends"
    )
    session_max: int = Field(86_400, ge=1, description="seconds after which the session of a browser ends in any case")
    rate_reads: float | None = Field(
        None,
        gt=0,
        description="maximum number of reads of one caller, or of one address without a credential, a second",
    )
    rate_writes: float | None = Field(None, gt=0, description="the same for requests with methods that write")
    denials_kept: int = Field(
        0,
        ge=0,
        le=1_000_000,
        description="maximum number of refused writes that `/-/denials` lists, of which the oldest go; 0 keeps none",
    )
    ui: bool = Field(True, description="whether the server has pages for people in browsers, below `/ui/`")
    event_changes: bool = Field(True, description="whether events list the changed attributes, in `data`")
    domain_validation: DomainValidation = Field(
        "warn",
        description="rules of endpoints and messages beyond the model: `off`, `warn` counts findings in "
        "`Annals-Findings`, `strict` refuses the request",
    )
    master_key: Annotated[str | None, validated_by(parse_keys)] = Field(
        None,
        description="keys that encrypt the secrets of subscriptions and links: base64 of 32 bytes each, "
        "comma-separated, the newest first",
    )
    master_key_file: Annotated[str | None, validated_by(lambda path: parse_keys(json_settings.read_file(path)))] = (
        Field(None, description="path of a file with such keys, comma-separated or one per line")
    )
    subscriptions_endpoint: Annotated[str | None, validated_by(_validate_id)] = Field(
        None, description="id of the endpoint under which the registry lists its subscriptions"
    )
    subscriptions_owned: int = Field(1000, ge=0, description="maximum number of subscriptions of one caller")
    subscriptions_filters: int = Field(20, ge=1, description="maximum number of filters of one subscription")
    subscriptions_body: int = Field(65536, ge=1, description="maximum size of the body of a subscription, in bytes")
    sinks_allow: Annotated[str | None, validated_by(parse_allow_list)] = Field(
        None,
        description="private addresses, hosts and ports below 1024 to which events and links may connect: "
        "`host|CIDR[:port]`, comma-separated",
    )
    sinks_plaintext: Annotated[bool | None, AfterValidator(_default_plaintext)] = Field(
        None,
        description="`true` or `false`: whether events may be sent without TLS; if unset, only while the server "
        "listens on its own machine alone and all clients may write",
    )
    sinks_ca: Annotated[str | None, validated_by(check_authorities)] = Field(
        None,
        description="path of a PEM file with additional certificate authorities for sinks and links, and for the "
        "registries that `annals import`, `annals export` and `annals log hash` ask",
    )
    sinks_validation: Literal["required", "optional", "off"] = Field(
        "optional",
        description="webhooks that have not consented: `required` sends them nothing, `optional` sends ten requests a "
        "minute, `off` does not ask for consent",
    )
    sinks_origin: Annotated[str | None, validated_by(_check_dns_name)] = Field(
        None, description="DNS name that identifies the sender to sinks; if unset, the host of the public URL"
    )
    links: Annotated[str | None, validated_by(parse_configured_links)] = Field(
        None,
        description="replication links that the server creates when it starts: JSON by id, or the path of a JSON file",
    )
    link_max_interaction: int = Field(
        MAX_INTERACTION_BYTES,
        ge=1 << 16,
        description="maximum size of one interaction of another log, in bytes of its lines; beyond it, the link fails",
    )
    registryid: Annotated[str, AfterValidator(_validate_id)] = Field(
        "annals", description="`registryid` of a new store; an existing store keeps its own"
    )
    log_level: Annotated[Literal["debug", "info", "warning", "error"], BeforeValidator(_lower_case)] = Field(
        "info", description="minimum level of the log lines of Annals and of its HTTP server, on stderr"
    )
    log_format: Annotated[LogFormat, BeforeValidator(_lower_case)] = Field(
        "console", description="form of log lines: `console` for people, `json` for one JSON object per line"
    )
    access_log: Annotated[AccessLogMode, BeforeValidator(_lower_case)] = Field(
        "auto",
        description="a log line per request, at level `info`: `auto` leaves lines out while more than "
        f"{AUTO_LIMIT} requests a second arrive, but never those of errors of the server; `on` and `off`",
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
    def compat_hosts(self) -> dict[str, CanonicalPath]:
        """The canonical paths of legacy APIs by the host names that serve only one of them."""
        return canonical_paths(
            _parse_hosts(self.compat_schemaregistry_hosts or ""),
            _parse_hosts(self.compat_messagecatalog_hosts or ""),
            _parse_hosts(self.compat_confluent_hosts or ""),
        )

    @property
    def auth(self) -> AuthSettings:
        """The authenticators that are on, and what callers without a credential may do."""
        claims = ClaimSettings(
            self.jwt_issuer,
            self.jwt_audience,
            self.jwt_role_claim,
            self.jwt_groups_claim,
            self.jwt_name_claim,
            self.jwt_member_claim,
        )
        return AuthSettings(
            self.tokens,
            self.jwt_keys,
            self.basic_file,
            self.tls_clients,
            self.api_keys,
            claims,
            self.read_only_anonymous,
            self.rate_reads,
            self.rate_writes,
            self.oidc,
            SessionSettings(self.session_idle, self.session_max),
        )

    @property
    def oidc(self) -> OidcSettings | None:
        """The provider that people sign in at; None without one."""
        if not self.oidc_issuer:
            return None
        secret = json_settings.read_file(self.oidc_client_secret_file).strip() if self.oidc_client_secret_file else ""
        return OidcSettings(
            self.oidc_issuer,
            self.oidc_client_id or "",
            self.public_url or "",
            secret,
            self.oidc_scopes,
            self.oidc_name,
            self.oidc_cli_client_id or "",
        )

    @property
    def tls(self) -> TlsFiles | None:
        """The files of TLS; None if the server has none."""
        return TlsFiles(self.tls_cert, self.tls_key, self.tls_client_ca) if self.tls_cert else None

    @property
    def is_local(self) -> bool:
        """Whether only its own machine can reach the server."""
        try:
            return self.host == "localhost" or ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def own_hosts(self) -> tuple[str, ...] | None:
        """The host names that the server accepts; None to accept any (ACC-87)."""
        is_checked = self.hosts or self.public_url or self.auth.anonymous.role is not None
        public_host = urlsplit(self.public_url or "").hostname
        configured_hosts = (name for name in (self.host, public_host) if name)
        return (*configured_hosts, *self.compat_hosts, *parse_hosts(self.hosts or "")) if is_checked else None

    @property
    def other_registries(self) -> tuple[str, ...]:
        """The URLs in `registries`."""
        return _parse_urls(self.registries or "")


def server_url(settings: Settings, port: int = 0) -> str:
    """The URL at which this machine reaches the server. port: the port that the server listens on."""
    host = _REACHABLE_HOSTS.get(settings.host, settings.host)
    reachable_port = port or settings.port or DEFAULT_PORT
    scheme = "https" if settings.tls else "http"
    return f"{scheme}://[{host}]:{reachable_port}" if ":" in host else f"{scheme}://{host}:{reachable_port}"
