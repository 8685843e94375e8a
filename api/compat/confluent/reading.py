"""Answers of Confluent's API that change nothing. Which path each has is in the table `ROUTES` in `routes.py`.

Those about a schema by its id or guid are in `reading_by_id.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from annals import __version__
from annals.api.compat.confluent.request_params import (
    LATEST_VERSION,
    QueryParams,
    parse_version,
    schema_request,
)
from annals.api.compat.confluent.responses import json_response, status_error, text_response
from annals.api.compat.confluent.view import ConfluentView, one_version
from annals.api.http.request import Request
from annals.api.http.response import Response
from annals.domain.confluent.checks import SchemaDocument
from annals.domain.confluent.commands import SchemaRequest
from annals.domain.confluent.errors import (
    SchemaRegistryError,
    no_subject_config,
    no_subject_mode,
    schema_not_found,
    subject_not_found,
    version_not_found,
)
from annals.domain.confluent.messages import closing_messages
from annals.domain.confluent.schema_types import SCHEMA_TYPES
from annals.domain.confluent.schema_versions import SchemaVersion
from annals.domain.confluent.settings import LEVEL, effective_config, effective_mode
from annals.domain.confluent.subject_versions import SubjectVersions
from annals.domain.confluent.subjects import (
    ALL_CONTEXTS,
    DEFAULT_CONTEXT,
    Subject,
    has_prefix,
    parse_context,
    parse_subject,
    sort_key,
)
from annals.domain.decisions.changes.documents import digest
from annals.domain.decisions.confluent.register import (
    compared_versions,
    comparisons_of,
    latest_extras,
    messages_of,
)
from annals.domain.values import xid as xids
from annals.domain.values.json_text import loads_trusted

#: The header with which clients ask for members that older ones do not know (CSR-113).
_UNKNOWN_PROPERTIES: Final = b"confluent-accept-unknown-properties"


@dataclass(frozen=True, slots=True)
class ConfluentRead:
    """A request and the moment that answers it.

    parts: the variable parts of the path. context: of the path, None without `/contexts/...`. body: of a POST.
    """

    request: Request
    parts: Mapping[str, str]
    context: str | None
    params: QueryParams
    body: Mapping[str, Any]
    view: ConfluentView

    @property
    def is_full(self) -> bool:
        return (self.request.header(_UNKNOWN_PROPERTIES) or "").lower() == "true"

    @property
    def format(self) -> str:
        return self.params.text("format")

    @property
    def scope(self) -> Subject:
        """What a config or mode is of: the subject of the path, its context, or the default context."""
        text = self.parts.get("subject", "")
        return parse_subject(text, self.context or DEFAULT_CONTEXT)

    def subject(self, text: str | None = None) -> Subject:
        """The subject that the path or a parameter names, with its alias, also in another context (CSR-305)."""
        name = self.parts["subject"] if text is None else text
        is_qualified = self.context is not None or name.startswith(":.")
        return self.view.found_subject(parse_subject(name, self.context or DEFAULT_CONTEXT), is_qualified=is_qualified)

    def json(self, body: Any) -> Response:
        return json_response(self.request, body)


# --- subjects and versions -------------------------------------------------------------------------------------------


def root(read: ConfluentRead) -> Response:
    """Answers `GET /` and `POST /`: an empty object, by which clients find that the server works."""
    return read.json({})


def list_subjects(read: ConfluentRead) -> Iterator[str]:
    """Answers `GET /subjects`: the names of subjects in order, by default of all contexts."""
    prefix = _prefix(read, ALL_CONTEXTS)
    only_deleted = read.params.flag("deletedOnly")
    subjects = read.view.subjects(
        _contexts(read, prefix), with_deleted=read.params.flag("deleted"), only_deleted=only_deleted
    )
    yield from read.params.page([subject.qualified for subject in subjects if has_prefix(subject, prefix)])


def look_up_schema(read: ConfluentRead) -> Response:
    """Answers `POST /subjects/{subject}`: the version of the subject that has the schema of the body."""
    schema, subject = schema_request(read.body), read.subject()
    versions, with_deleted = read.view.versions(subject), read.params.flag("deleted")
    found = _match(read, subject, schema, versions)
    if not _sees_any(versions, with_deleted):
        raise subject_not_found(subject.qualified)
    if found is None:
        raise schema_not_found()
    return read.json(read.view.schema_object(found, format=read.format, is_full=read.is_full))


def list_versions(read: ConfluentRead) -> Response:
    """Answers `GET /subjects/{subject}/versions`: the version numbers."""
    subject, params = read.view.registry.with_alias(read.scope), read.params
    versions = read.view.versions(subject).all
    counts_deleted = params.flag("deleted") or params.flag("deletedOnly")
    if not any(version.is_live or counts_deleted for version in versions):
        raise subject_not_found(subject.qualified)
    if params.flag("deletedAsNegative"):
        numbers = [version.number if version.is_live else -version.number for version in versions]
    elif params.flag("deletedOnly"):
        numbers = [version.number for version in versions if not version.is_live]
    else:
        numbers = [version.number for version in versions if version.is_live or counts_deleted]
    return read.json(params.page(numbers))


def read_version(read: ConfluentRead) -> Response:
    """Answers `GET /subjects/{subject}/versions/{version}`: a version with its id and its text."""
    version = _version(read)
    qualifies = read.params.text("referenceFormat").lower() == "qualified"
    return read.json(read.view.schema_object(version, format=read.format, is_full=read.is_full, qualifies=qualifies))


def read_version_text(read: ConfluentRead) -> Response:
    """Answers `GET /subjects/{subject}/versions/{version}/schema`: only the text of a version."""
    return text_response(read.request, read.view.text(_version(read), read.format))


def list_referrers(read: ConfluentRead) -> Response:
    """Answers `GET /subjects/{subject}/versions/{version}/referencedby`: the ids of schemas that refer to a version."""
    version = _version(read, with_deleted=True)
    with_deleted = read.params.flag("deleted")
    referrers = read.view.readable(read.view.registry.referrers(version))
    return read.json(read.params.page(sorted({one.id for one in referrers if one.is_live or with_deleted})))


def find_by_metadata(read: ConfluentRead) -> Response:
    """Answers `GET /subjects/{subject}/metadata`: the newest version with the properties of the query."""
    subject = read.subject()
    wanted = dict(zip(read.params.texts("key"), read.params.texts("value"), strict=False))
    versions = [one for one in read.view.versions(subject).all if one.is_live or read.params.flag("deleted")]
    if not versions:
        raise subject_not_found(subject.qualified)
    for version in reversed(versions):
        properties = (version.extras.get("metadata") or {}).get("properties") or {}
        if wanted.items() <= properties.items():
            return read.json(read.view.schema_object(version, format=read.format, is_full=read.is_full))
    raise schema_not_found()


# --- schemas ---------------------------------------------------------------------------------------------------------


def list_schemas(read: ConfluentRead) -> Iterator[dict[str, Any]]:
    """Answers `GET /schemas`: versions of all subjects, by subject and number.

    With the flag `aliases`, they include those of subjects for which others with the prefix stand.
    """
    params, prefix, with_deleted = read.params, _prefix(read, ""), read.params.flag("deleted")
    contexts = _contexts(read, prefix)
    by_subject: dict[Subject, list[SchemaVersion]] = {}
    for version in read.view.listed_versions(contexts):
        subject = read.view.subject(version)
        if has_prefix(subject, prefix) and (version.is_live or with_deleted):
            by_subject.setdefault(subject, []).append(version)
    aliases = _aliases(read, prefix, contexts) if params.flag("aliases") else {}
    for subject in aliases.keys() - by_subject.keys():
        found = read.view.versions(subject).all
        by_subject[subject] = [version for version in found if version.is_live or with_deleted]
    shown: list[SchemaVersion] = []
    for subject in sorted(by_subject, key=sort_key):
        versions = sorted(by_subject[subject], key=lambda version: version.number)
        shown += versions[-1:] if params.flag("latestOnly") else versions
    if rule_type := params.text("ruleType"):
        shown = [version for version in shown if _has_rule(version, rule_type)]
    for schema in read.view.schema_objects(params.page(shown), is_full=read.is_full):
        names = aliases.get(parse_subject(schema["subject"])) if aliases else None
        yield {**schema, "aliases": names} if names else schema


def _aliases(read: ConfluentRead, prefix: str, contexts: list[str]) -> dict[Subject, list[str]]:
    """The names of the aliases with a prefix, by the subjects for which they stand."""
    found = (
        (subject, [alias.qualified for alias in sorted(aliases, key=sort_key) if has_prefix(alias, prefix)])
        for subject, aliases in read.view.aliases(contexts).items()
    )
    return {subject: names for subject, names in found if names}


def list_types(read: ConfluentRead) -> Response:
    """Answers `GET /schemas/types`: the names of the schema types."""
    return read.json(list(SCHEMA_TYPES))


# --- compatibility, config, mode, contexts ---------------------------------------------------------------------------


def check_compatibility(read: ConfluentRead) -> Response:
    """Answers `POST /compatibility/subjects/{subject}/versions` and the same path with `/{version}`.

    The answer says whether the schema of the body is compatible with versions of the subject, or with that version.
    """
    schema, subject, view = schema_request(read.body), read.view.registry.with_alias(read.scope), read.view
    is_verbose = read.params.flag("verbose")
    config = effective_config(subject, view.registry.settings, view.default_level)
    versions = view.versions(subject)
    level = str(config[LEVEL])
    if "version" in read.parts:
        number = parse_version(read.parts["version"])
        version = one_version(versions, number, with_deleted=False)
        if version is None and number != LATEST_VERSION:
            raise version_not_found(number)
        compared = [version] if version is not None else []
    else:
        compared = compared_versions(
            versions, level, config, schema.inheriting(latest_extras(versions), config).metadata
        )
    try:
        messages = _incompatibilities(read, subject, schema, compared, level, config)
    except SchemaRegistryError as error:
        if not is_verbose or error.code != 42201:
            raise
        messages = [error.message]
    return read.json({"is_compatible": not messages, **({"messages": messages} if is_verbose else {})})


def read_config(read: ConfluentRead) -> Response:
    """Answers `GET /config` and `GET /config/{subject}`: the compatibility level and the rest of the config."""
    scope, settings = read.scope, read.view.registry.settings
    config: Mapping[str, Any] = settings(scope).config
    if not scope.is_context and not config and not read.params.flag("defaultToGlobal"):
        raise no_subject_config(scope.qualified)
    in_scope = effective_config(scope, settings, read.view.default_level)
    if scope.is_context or read.params.flag("defaultToGlobal"):
        config = in_scope
    return read.json({LEVEL: in_scope[LEVEL], **config})


def read_mode(read: ConfluentRead) -> Response:
    """Answers `GET /mode` and `GET /mode/{subject}`: the mode."""
    scope, settings = read.scope, read.view.registry.settings
    own_mode = settings(scope).mode
    if read.view.is_readonly(scope):
        own_mode = "READONLY"
    if own_mode is None and not scope.is_context and not read.params.flag("defaultToGlobal"):
        raise no_subject_mode(scope.qualified)
    return read.json({"mode": own_mode or effective_mode(scope, settings)})


def list_contexts(read: ConfluentRead) -> Response:
    """Answers `GET /contexts`: the names of the contexts, the default one first."""
    prefix = read.params.text("contextPrefix")
    names = [DEFAULT_CONTEXT, *(context for context in read.view.groups if context != DEFAULT_CONTEXT)]
    return read.json(read.params.page([name for name in names if name.startswith(prefix)]))


# --- metadata of the server ------------------------------------------------------------------------------------------


def read_cluster(read: ConfluentRead) -> Response:
    """Answers `GET /v1/metadata/id`: the id of the registry, as that of a cluster."""
    row = read.view.read_model.entity(xids.REGISTRY)
    clusters = {"schema-registry-cluster": loads_trusted(row.attributes)["registryid"] if row is not None else ""}
    return read.json({"id": "", "scope": {"path": [], "clusters": clusters}})


def read_server_version(read: ConfluentRead) -> Response:
    """Answers `GET /v1/metadata/version`: the version of this server."""
    return read.json({"version": __version__, "commitId": ""})


def read_deployment(read: ConfluentRead) -> Response:
    """Answers `GET /v1/metadata/deployment`: an empty object."""
    return read.json({})


# --- details ---------------------------------------------------------------------------------------------------------


def _match(
    read: ConfluentRead, subject: Subject, schema: SchemaRequest, versions: SubjectVersions
) -> SchemaVersion | None:
    if not schema.text:
        return None
    candidates = read.view.candidates(subject, schema, versions, normalize=read.params.flag("normalize"), is_new=False)
    return read.view.matching(candidates, schema.text, versions, with_deleted=read.params.flag("deleted"))


def _sees_any(versions: SubjectVersions, with_deleted: bool) -> bool:
    return versions.latest is not None or (with_deleted and bool(versions))


def _version(read: ConfluentRead, *, with_deleted: bool | None = None) -> SchemaVersion:
    """The version that the path names. Raises: SchemaRegistryError."""
    number, subject = parse_version(read.parts["version"]), read.subject()
    sees_deleted = read.params.flag("deleted") if with_deleted is None else with_deleted
    versions = read.view.versions(subject)
    version = one_version(versions, number, with_deleted=sees_deleted)
    if version is None:
        if not _sees_any(versions, sees_deleted):
            raise subject_not_found(subject.qualified)
        raise version_not_found(number or "latest")
    return version


def _incompatibilities(
    read: ConfluentRead,
    subject: Subject,
    schema: SchemaRequest,
    compared: list[SchemaVersion],
    level: str,
    config: Mapping[str, Any],
) -> list[str]:
    view = read.view
    group = view.registry.group(subject.context) or view.context_ids.default_group
    view.content(schema, group, normalizes=False, is_new=True)  # an invalid schema is compatible with nothing
    sent = schema.text.encode()
    references = view.registry.references(group)
    only_live = "version" not in read.parts  # as registering it
    numbered = references.numbered(schema.references, view.caller.can_read, only_live=only_live)
    new = SchemaDocument(schema.type, digest(sent) or "", references.documents(numbered))
    for version in compared:
        comparisons = comparisons_of(
            new, view.document(version), level, is_lenient=config.get("compatibilityPolicy") == "LENIENT"
        )
        results = {one: view.check(one, {new.sha256: sent}) for one in comparisons.values()}
        messages = messages_of(comparisons, results)
        if messages:
            return [*messages, *closing_messages(version.number, view.text(version), level)]
    return []


def _prefix(read: ConfluentRead, default: str) -> str:
    """The prefix of subjects, with the context of the path before an unqualified one (CSR-302)."""
    prefix = read.params.text("subjectPrefix", default if read.context is None else "")
    if read.context is None or prefix.startswith((":.", ALL_CONTEXTS)):
        return prefix
    return f":{read.context}:{prefix}"


def _contexts(read: ConfluentRead, prefix: str) -> list[str]:
    if prefix.startswith(ALL_CONTEXTS):
        return list(read.view.groups)
    return [parse_subject(prefix).context]


def _has_rule(version: SchemaVersion, type: str) -> bool:
    rule_set = version.extras.get("ruleSet") or {}
    rules = (rule for name in ("migrationRules", "domainRules", "encodingRules") for rule in rule_set.get(name) or ())
    return any(rule.get("type") == type for rule in rules)


def context_of_path(text: str) -> str:
    """The context of a path. Raises: SchemaRegistryError, 400."""
    context = parse_context(text)
    if context is None:
        raise status_error(400)
    return context
