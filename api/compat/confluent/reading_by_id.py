"""Answers about a schema by its id or guid (CSR-207 to CSR-210, CSR-411)."""

from __future__ import annotations

from collections.abc import Iterator

from annals.api.compat.confluent.reading import ConfluentRead
from annals.api.compat.confluent.request_params import parse_id
from annals.api.compat.confluent.responses import text_response
from annals.api.http.response import Response
from annals.domain.confluent.content import GUID, guid_text
from annals.domain.confluent.errors import schema_not_found
from annals.domain.confluent.schema_versions import SchemaVersion
from annals.domain.confluent.subjects import DEFAULT_CONTEXT, Subject, parse_subject, sort_key


def read_schema(read: ConfluentRead) -> Response:
    """Answers `GET /schemas/ids/{id}`: the schema without its subject and number, unless the query names a subject."""
    version = _by_id(read)
    qualifies = read.params.text("referenceFormat").lower() == "qualified"
    members = read.view.schema_object(version, format=read.format, is_full=read.is_full, qualifies=qualifies)
    hidden = ("id",) if read.params.text("subject") else ("id", "subject", "version")
    answer = {name: value for name, value in members.items() if name not in hidden}
    if read.params.flag("fetchMaxId"):
        answer["maxId"] = read.view.highest_id()
    if read.params.flag("includeSubjects"):
        answer["subjects"] = sorted({one.qualified for one, _ in _holders(read)})
    return read.json(answer)


def read_schema_text(read: ConfluentRead) -> Response:
    """Answers `GET /schemas/ids/{id}/schema`: only the text of the schema."""
    return text_response(read.request, read.view.text(_by_id(read), read.format))


def list_subjects_of_schema(read: ConfluentRead) -> Response:
    """Answers `GET /schemas/ids/{id}/subjects`: the names of the subjects that have the schema."""
    return read.json(read.params.page(list(dict.fromkeys(subject.qualified for subject, _ in _holders(read)))))


def list_versions_of_schema(read: ConfluentRead) -> Response:
    """Answers `GET /schemas/ids/{id}/versions`: the subjects and numbers of the versions with the schema."""
    holders = [{"subject": subject.qualified, "version": version.number} for subject, version in _holders(read)]
    return read.json(read.params.page(holders))


def read_schema_by_guid(read: ConfluentRead) -> Response:
    """Answers `GET /schemas/guids/{guid}`: the schema without its id."""
    found = next(_rows_by_guid(read), None)
    if found is None:
        raise schema_not_found(read.parts["guid"])
    members = read.view.schema_object(found, format=read.format, is_full=read.is_full)
    return read.json({name: value for name, value in members.items() if name not in ("id", "subject", "version")})


def list_ids_of_guid(read: ConfluentRead) -> Response:
    """Answers `GET /schemas/guids/{guid}/ids`: the id of the schema in each context that has it."""
    pairs = sorted({(read.view.registry.context(row.group), row.id) for row in _rows_by_guid(read)})
    return read.json([{"context": context, "id": id} for context, id in pairs])


def _by_id(read: ConfluentRead) -> SchemaVersion:
    """The oldest row with the id of the path."""
    return _rows_by_id(read)[0]


def _holders(read: ConfluentRead) -> list[tuple[Subject, SchemaVersion]]:
    """The versions with the id of the path and their subjects, in order."""
    with_deleted = read.params.flag("deleted")
    rows = _rows_by_id(read, with_shared=True)
    rows = [row for row in rows if row.is_live or (with_deleted and row.is_listed)]
    pairs = [(read.view.subject(row), row) for row in rows]
    return sorted(pairs, key=lambda pair: (sort_key(pair[0]), pair[1].number))


def _rows_by_id(read: ConfluentRead, *, with_shared: bool = False) -> list[SchemaVersion]:
    """The rows with the id of the path, of the context that the request is about (CSR-411).

    with_shared: include those of subjects that show the versions of others, which are else looked for where there is
    no other.
    """
    id = parse_id(read.parts["id"])
    rows = list(read.view.readable(read.view.read_model.schemas.by_id(id)))
    found = _rows_of_context(read, rows) if not with_shared else []
    if not found:
        shared = (version for version in read.view.shared_versions() if version.id == id)
        found = _rows_of_context(read, [*rows, *shared])
    if not found:
        raise schema_not_found(read.parts["id"])
    return found


def _rows_of_context(read: ConfluentRead, rows: list[SchemaVersion]) -> list[SchemaVersion]:
    """Those of the rows with an id that are of the context that the request is about."""
    contexts = {row.group: read.view.registry.context(row.group) for row in rows}
    name = read.params.text("subject")
    if name:
        subject = read.subject(name)
        own = [row for row in rows if (contexts[row.group], row.subject) == (subject.context, subject.name)]
        own = own or [
            version for version in read.view.versions(subject).all if version.id == parse_id(read.parts["id"])
        ]
        if own:
            return own
    wanted = read.context
    if wanted is None and name.startswith(":."):
        wanted = parse_subject(name).context
    if wanted is None:
        wanted = min(contexts.values(), key=lambda one: (one != DEFAULT_CONTEXT, one), default=None)
    return [row for row in rows if contexts[row.group] == wanted]


def _rows_by_guid(read: ConfluentRead) -> Iterator[SchemaVersion]:
    """The rows with the guid of the path; at last those of subjects that show the versions of others."""
    guid = _guid(read)
    yield from read.view.readable(read.view.read_model.schemas.by_guid(guid))
    yield from (version for version in read.view.shared_versions() if version.guid == guid)


def _guid(read: ConfluentRead) -> str:
    """Raises: SchemaRegistryError for a text that is no guid, so that no version has it."""
    guid = guid_text(read.parts["guid"].lower().replace("-", ""))
    if not GUID.fullmatch(guid):
        raise schema_not_found(read.parts["guid"])
    return guid
