"""Operations: what each method does at a path, takes and gives back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from api.capabilities import Capabilities
from api.headers import PREFIX, SCALAR
from api.openapi import flags
from api.openapi.parts import ENCODED, RECORDED, content, headers
from api.openapi.places import Place
from api.openapi.problems import refusals
from api.openapi.restoring import or_tried
from api.openapi.schemas import WRITE, Schema, attribute, map_of, object_of, reference
from api.paths import COLLECTIONS, Kind
from domain.model import ResourceType

Operation = dict[str, Any]

#: What each method does, by kind; `{0}` is the plural and `{1}` the singular of the type.
SUMMARIES: Final[dict[Kind, dict[str, str]]] = {
    Kind.REGISTRY: {
        "GET": "Read the registry",
        "PUT": "Replace the attributes of the registry",
        "PATCH": "Change attributes of the registry",
        "POST": "Create or replace entities of several types",
    },
    Kind.CAPABILITIES: {
        "GET": "Read the capabilities",
        "PUT": "Replace the capabilities",
        "PATCH": "Change some capabilities",
    },
    Kind.CAPABILITIESOFFERED: {"GET": "Read what the capabilities can be"},
    Kind.MODEL: {"GET": "Read the model in full"},
    Kind.MODELSOURCE: {"GET": "Read the model as it was sent", "PUT": "Replace the model"},
    Kind.EXPORT: {"GET": "Read everything as one document that another registry can import"},
    Kind.GROUPS: {
        "GET": "List the {0}",
        "PATCH": "Change several {0}",
        "POST": "Create or replace several {0}",
        "DELETE": "Delete several {0}, or all of them",
    },
    Kind.GROUP: {
        "GET": "Read one {1}",
        "PUT": "Create or replace one {1}",
        "PATCH": "Create or change one {1}",
        "POST": "Create or replace Resources of several types",
        "DELETE": "Delete one {1} with all that is in it",
    },
    Kind.RESOURCES: {
        "GET": "List the {0}",
        "PATCH": "Change several {0}",
        "POST": "Create or replace several {0}",
        "DELETE": "Delete several {0}, or all of them",
    },
    Kind.RESOURCE: {
        "GET": "Read one {1}",
        "PUT": "Create or replace one {1}",
        "PATCH": "Create or change one {1}",
        "POST": "Create or replace a Version of one {1}",
        "DELETE": "Delete one {1} with its Versions",
    },
    Kind.META: {
        "GET": "Read the meta of one {1}",
        "PUT": "Replace the meta of one {1}",
        "PATCH": "Change the meta of one {1}",
    },
    Kind.VERSIONS: {
        "GET": "List the Versions of one {1}",
        "PATCH": "Change several Versions of one {1}",
        "POST": "Create or replace several Versions of one {1}",
        "DELETE": "Delete several Versions of one {1}, or all of them",
    },
    Kind.VERSION: {
        "GET": "Read one Version of one {1}",
        "PUT": "Create or replace one Version of one {1}",
        "PATCH": "Create or change one Version of one {1}",
        "DELETE": "Delete one Version of one {1}",
    },
}
#: Headers that make a request depend on the entity tag of what is there.
CONDITIONS: Final = ("If-Match", "If-None-Match")
_VERBS: Final = {"GET": "read", "PUT": "replace", "PATCH": "change", "POST": "post", "DELETE": "delete"}

#: What the body of a POST is where it is not what stands at the path.
_POSTED: Final = {Kind.REGISTRY: "maps", Kind.GROUP: "maps", Kind.RESOURCE: "version"}
#: Kinds of which a PUT, a PATCH or a POST may make a new one.
_CREATABLE: Final = frozenset((Kind.GROUP, Kind.RESOURCE, Kind.META, Kind.VERSION))
#: Kinds that are read as they are written.
_UNIFORM: Final = frozenset((Kind.CAPABILITIES, Kind.MODELSOURCE))
#: Kinds that `collections` is for.
_NESTING: Final = frozenset((Kind.REGISTRY, Kind.EXPORT, Kind.GROUP))
#: What a Resource shows beside its default Version.
_NAVIGATION: Final = {
    "metaurl": {"type": "string"},
    "versionsurl": {"type": "string"},
    "versionscount": {"type": "integer"},
}
_LOCATED: Final = frozenset((Kind.RESOURCE, Kind.VERSION))


def operation(place: Place, method: str, capabilities: Capabilities) -> Operation:
    """The Operation Object of a method at a path."""
    parameters = [_parameter(name) for name in (*flags.names(place.kind, method, capabilities), *CONDITIONS)]
    body = _body(place, method)
    if place.document and body:
        parameters += [_parameter(name) for name in header_parameters(place)]
    return {
        "operationId": f"{_VERBS[method]}.{place.name}",
        "summary": _summary(place, method),
        "tags": [place.schema.partition(".")[0] if place.types[0] else "registry"],
        "parameters": parameters,
        **({"requestBody": body} if body else {}),
        "responses": dict(sorted({**_tried(_successes(place, method), method), **refusals()}.items())),
    }


def header_parameters(place: Place) -> dict[str, Schema]:
    """The `xRegistry-` headers that carry the attributes of a document in requests, by the names of components."""
    return {
        f"{_documented(place)}.{PREFIX}{name}": {
            "name": f"xRegistry-{name}",
            "in": "header",
            "schema": schema,
        }
        for name, schema in _header_schemas(place, answered=False).items()
    }


#: Headers that answers with documents have besides those of their attributes.
_DOCUMENTED: Final = ("Link", "Content-Location", "Content-Disposition", "Content-Security-Policy")
_PLACE: Final[Schema] = {
    "description": "Where the document is; absent for a URL that is a script.",
    "schema": {"type": "string"},
}


def document_response(place: Place) -> dict[str, Schema]:
    """The answer whose body is a document, by the name of its component."""
    attributes = _header_schemas(place, answered=True) | (_NAVIGATION if place.kind is Kind.RESOURCE else {})
    carried = {f"xRegistry-{name}": {"schema": schema} for name, schema in attributes.items()}
    return {
        _document_name(place): {
            "description": "The document, byte for byte, with its Content-Type if that is known.",
            "headers": {**headers(*_DOCUMENTED, *RECORDED, ENCODED), **carried},
            "content": {"*/*": {}},
        }
    }


def _header_schemas(place: Place, answered: bool) -> dict[str, Schema]:
    """Attributes that travel as one header each; a map of texts has one for each of its keys, which none can list."""
    type = _resource(place)
    return {
        name: attribute({key: value for key, value in row.items() if key not in ("default", "readonly")})
        for name, row in type.version.definitions.items()
        if row["type"] in SCALAR
        and name not in ("contenttype", f"{type.singular}base64")
        and (answered or not row.get("readonly"))
    }


def _summary(place: Place, method: str) -> str:
    said = SUMMARIES[place.kind][method].format(*place.types)
    if method == "DELETE":
        return said
    if place.document:
        return f"{said}: the document"
    return f"{said}: the metadata" if place.details else said


def _body(place: Place, method: str) -> Schema | None:
    if method == "GET" or (method == "DELETE" and place.kind not in COLLECTIONS):
        return None
    if method == "DELETE":
        return _json(_deletions(place), required=False)
    if place.document:
        return {"description": "The document.", "content": {"*/*": {}}}
    return _json(_shape(place, method, WRITE if place.kind not in _UNIFORM else ""), required=True)


def _shape(place: Place, method: str, suffix: str = "") -> Schema:
    """The schema of a body, sent (with the suffix of requests) or answered."""
    posted = _POSTED.get(place.kind) if method == "POST" else None
    if posted == "maps":
        return object_of({name: map_of(schema + suffix) for name, schema in place.nested})
    if posted == "version":
        return reference(f"{place.schema}.versions{suffix}")
    if place.kind in COLLECTIONS:
        return map_of(place.schema + suffix)
    return reference(place.schema + suffix)


def _deletions(place: Place) -> Schema:
    """A map of what goes, each with the epoch that it has to have; that of a Resource is in its meta."""
    epoch = object_of({"epoch": {"type": ["integer", "null"]}})
    named = object_of({"meta": epoch}) if place.kind is Kind.RESOURCES else epoch
    return {"type": "object", "additionalProperties": {**named, "additionalProperties": True}}


def _successes(place: Place, method: str) -> dict[str, Schema]:
    if method == "DELETE":
        return {"204": _answer("It is gone.", "Link", *_recorded(method))}
    if place.document:
        return _documents(place, method)
    located = ("Content-Location",) if place.kind in _LOCATED else ()
    named = ("Link", *located, *_recorded(method))
    body = content(_answered(place, method))
    found = {"200": {**_answer("What is there now.", *named, *_tagged(method)), **body}, **_unchanged(method)}
    if _may_create(place, method):
        found["201"] = {**_answer("What is new.", "Location", *named), **body}
    return found | _pruned(place, method)


def _tried(answers: dict[str, Schema], method: str) -> dict[str, Schema]:
    """The answers with that to a dry run; one in document form may be anything already."""
    found = answers.get("200")
    return answers if method == "GET" or (found and "$ref" in found) else {**answers, "200": or_tried(found)}


def _documents(place: Place, method: str) -> dict[str, Schema]:
    """Answers in document form. With `doc` they are metadata again."""
    versioned = _document_name(place) if method != "POST" else _document_name(place, versions=True)
    shown = {"$ref": f"#/components/responses/{versioned}"}
    elsewhere = _answer("The document is elsewhere.", "Link", *_recorded(method))
    led = {**elsewhere, "headers": {**elsewhere["headers"], "Location": _PLACE}}
    found = {"200": shown, "303": led, **_unchanged(method)}
    if _may_create(place, method):
        found["201"] = shown
    return found | _pruned(place, method)


def _pruned(place: Place, method: str) -> dict[str, Schema]:
    """The answer where the Version of a request is the oldest of more than there may be."""
    is_version = place.kind is Kind.VERSION or (place.kind is Kind.RESOURCE and method == "POST")
    if method == "GET" or not is_version or not _resource(place).maxversions:
        return {}
    return {"204": _answer("The Version is older than all that may be kept, so it is gone again.", "Link", *RECORDED)}


def _unchanged(method: str) -> dict[str, Schema]:
    return {"304": _answer("The client has it.", "Link", "ETag")} if method == "GET" else {}


def _tagged(method: str) -> tuple[str, ...]:
    return ("ETag",) if method == "GET" else ()


def _answered(place: Place, method: str) -> Schema:
    """What an answer shows: what was asked for, or with `collections` just what is nested in it."""
    whole = _shape(place, method)
    if method == "POST" or place.kind not in _NESTING:
        return whole
    names = {name: map_of(schema) for name, schema in place.nested}
    urls = {f"{name}url": {"type": "string"} for name in names}
    counts = {f"{name}count": {"type": "integer"} for name in names}
    return {"anyOf": [whole, object_of({**names, **urls, **counts})]}


def _may_create(place: Place, method: str) -> bool:
    posted = method == "POST" and _POSTED.get(place.kind) == "version"
    return place.kind in _CREATABLE and (method in ("PUT", "PATCH") or posted)


def _recorded(method: str) -> tuple[str, ...]:
    return () if method == "GET" else RECORDED


def _answer(says: str, *names: str) -> Schema:
    return {"description": says, "headers": headers(*names)}


def _json(schema: Schema, required: bool) -> Schema:
    return {"required": required, **content(schema)}


def _parameter(name: str) -> Mapping[str, str]:
    return {"$ref": f"#/components/parameters/{name}"}


def _documented(place: Place) -> str:
    """The schema of the Versions whose documents and headers these are."""
    return place.schema.removesuffix(".versions")


def _document_name(place: Place, versions: bool = False) -> str:
    return f"Document-{place.schema}{'.versions' if versions else ''}"


def _resource(place: Place) -> ResourceType:
    assert place.resource is not None, "only Resources and Versions come here"
    return place.resource
