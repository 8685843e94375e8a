"""The OpenAPI document as one HTML page, without scripts and external resources, also readable on a phone."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from hashlib import sha256
from itertools import groupby
from typing import Any, Final

from api.openapi.html import Html, element, join_html
from api.openapi.problems import ALL_PROBLEM_TYPES
from domain.errors.problems import Problem
from domain.values.json_text import dumps

STYLE: Final = """
:root { color-scheme: light dark; --line: #8884; --soft: #8882; --link: #0b57d0; --quiet: #5f6368 }
@media (prefers-color-scheme: dark) { :root { --link: #8ab4f8; --quiet: #9aa0a6 } }
* { box-sizing: border-box }
body { margin: 0 auto; max-width: 60rem; padding: 1rem; font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere }
h1 { margin: 0 } h2 { margin: 2.5rem 0 .5rem; border-bottom: 2px solid var(--line) } h3 { margin: 1.5rem 0 .5rem }
a { color: var(--link) } code { font: .9em ui-monospace, monospace }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; padding: 0; list-style: none }
h4 { margin: 0; padding: .45rem .7rem; background: var(--soft) }
details, .path { border: 1px solid var(--line); border-radius: .4rem; margin: .5rem 0 }
.path > details { border: 0; margin: 0 }
summary { cursor: pointer; padding: .45rem .7rem } details > div { padding: 0 .7rem .7rem }
summary:hover { background: var(--soft) } p { margin: .4rem 0 } .quiet { color: var(--quiet) }
.method { display: inline-block; min-width: 4.2rem; font: bold .8rem ui-monospace, monospace }
dl { margin: .4rem 0; display: grid; grid-template-columns: minmax(8rem, 16rem) 1fr; gap: .25rem 1rem }
dt { font: .9em/1.6 ui-monospace, monospace } dd { margin: 0 }
:target { background: var(--soft); outline: 2px solid var(--link) }
@media (max-width: 40rem) { dl { grid-template-columns: 1fr; gap: 0 } dd { margin: 0 0 .5rem 1rem } }
"""
#: A content security policy that allows only the page's own style.
PAGE_POLICY: Final = (
    f"default-src 'none'; style-src 'sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_METHODS: Final = ("get", "put", "patch", "post", "delete")
_SECTIONS: Final = {"paths": "Paths", "parameters": "Parameters", "schemas": "Schemas", "problems": "Problems"}
_PROBLEMS: Final = ("Problem", "OwnProblem")


def render_page(document: Mapping[str, Any]) -> str:
    """The page. document: an OpenAPI document of this registry."""
    info, base = document["info"], document["servers"][0]["url"]
    body = (
        element("h1", info["title"]),
        element(
            "p", "The xRegistry ", info["version"], " API of ", element("a", base, href=f"{base}/"), class_="quiet"
        ),
        element("p", _text(info["description"])),
        element("p", element("a", "openapi.json", href=f"{base}/-/openapi.json"), " has the same for programs."),
        _contents(),
        _section("paths", *_paths(document)),
        _section("parameters", *_parameters(document["components"]["parameters"])),
        _section("schemas", *_schemas(document["components"]["schemas"])),
        _section("problems", *_problems()),
    )
    return f"<!doctype html>\n{_html(info['title'], *body)}\n"


def _html(title: str, *body: Html) -> Html:
    head = element(
        "head",
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        element("title", f"{title}: the API"),
        element("style", Html(STYLE)),
    )
    return element("html", head, element("body", *body), lang="en")


def _contents() -> Html:
    links = (element("li", element("a", says, href=f"#{name}")) for name, says in _SECTIONS.items())
    return element("nav", element("ul", *links))


def _section(name: str, *children: Html) -> Html:
    return element("section", element("h2", _SECTIONS[name], id=name), *children)


def _paths(document: Mapping[str, Any]) -> Iterable[Html]:
    """The paths by tag, in the order of the document."""
    described = {each["name"]: each.get("description", "") for each in document["tags"]}
    for name, group in groupby(document["paths"].items(), key=lambda row: _tag_of(row[1])):
        yield element("h3", name)
        if described[name]:
            yield element("p", described[name], class_="quiet")
        yield from (_path(path, item) for path, item in group)


def _tag_of(item: Mapping[str, Any]) -> str:
    return next(str(item[method]["tags"][0]) for method in _METHODS if method in item)


def _path(path: str, item: Mapping[str, Any]) -> Html:
    operations = (_operation(method, item[method]) for method in _METHODS if method in item)
    return element("div", element("h4", element("code", path)), *_described(item), *operations, class_="path")


def _described(item: Mapping[str, Any]) -> Iterable[Html]:
    """The parameters that only this path has."""
    rows = [row for row in item.get("parameters", ()) if row.get("description")]
    if rows:
        yield element("dl", *(element(name, *said) for row in rows for name, said in _definition(row)))


def _definition(row: Mapping[str, Any]) -> Iterable[tuple[str, tuple[Html | str, ...]]]:
    return ("dt", (element("code", row["name"]),)), ("dd", (row["description"],))


def _operation(method: str, operation: Mapping[str, Any]) -> Html:
    head = element("summary", element("span", method.upper(), class_="method"), " ", operation["summary"])
    body: list[Html] = [*_described(operation)]
    references = [each["$ref"] for each in operation.get("parameters", ()) if "$ref" in each]
    if names := [each.rpartition("/")[2] for each in references]:
        body.append(
            element("p", "Parameters: ", _listed(element("a", _short(name), href=f"#p-{name}") for name in names))
        )
    if "requestBody" in operation:
        body.append(element("p", "Takes: ", _content(operation["requestBody"])))
    body.append(element("dl", *_responses(operation["responses"])))
    return element("details", head, element("div", *body))


def _responses(responses: Mapping[str, Any]) -> Iterable[Html]:
    for status, response in responses.items():
        if "$ref" not in response:
            yield join_html(element("dt", status), element("dd", response["description"], " ", _content(response)))
        elif "Document-" in response["$ref"]:
            yield join_html(element("dt", status), element("dd", "The document."))
    refused = [status for status, response in responses.items() if "Problem-" in response.get("$ref", "")]
    yield join_html(
        element("dt", ", ".join(refused)), element("dd", "A ", element("a", "problem", href="#problems"), ".")
    )


def _content(body: Mapping[str, Any]) -> Html:
    """The media types and schemas of a body."""
    found = [
        join_html(element("code", name), ": ", _shape(each["schema"])) if "schema" in each else element("code", name)
        for name, each in body.get("content", {}).items()
    ]
    return _listed(found)


def _parameters(parameters: Mapping[str, Any]) -> Iterable[Html]:
    rows = [
        join_html(element("dt", row["name"], id=f"p-{name}"), element("dd", _parameter(name, row)))
        for name, row in parameters.items()
    ]
    return [element("dl", *rows)]


def _parameter(name: str, row: Mapping[str, Any]) -> Html:
    where = "in the query" if row["in"] == "query" else f"header of {name.rpartition('.')[0] or 'all requests'}"
    quiet = element("span", f"{where}; ", _shape(row["schema"]), class_="quiet")
    return join_html(_text(row.get("description", "")), " ", quiet)


def _schemas(schemas: Mapping[str, Any]) -> Iterable[Html]:
    """The schemas of entities. Request schemas are left out; they only lack the read-only members."""
    for name, schema in schemas.items():
        if not name.startswith(_PROBLEMS) and not name.endswith("-write"):
            head = element("summary", element("code", name))
            yield element("details", head, element("div", _members(schema)), id=f"s-{name}")


def _members(schema: Mapping[str, Any]) -> Html:
    required = set(schema.get("required", ()))
    rows = [
        join_html(element("dt", name), element("dd", _member(each, name in required)))
        for name, each in schema.get("properties", {}).items()
    ]
    others = schema.get("additionalProperties", False) is not False
    choices = [choice for hint in schema.get("allOf", ()) for choice in hint["anyOf"]]
    return join_html(
        element("dl", *rows),
        *([element("p", "Others are allowed.", class_="quiet")] if others else ()),
        *(_choice(choice) for choice in choices if "const" in next(iter(choice["properties"].values()))),
    )


def _choice(choice: Mapping[str, Any]) -> Html:
    """The members that exist when an attribute has a certain value."""
    (name, value), *siblings = choice["properties"].items()
    head = element("summary", "where ", element("code", name), " is ", element("code", _json(value["const"])))
    return element("details", head, element("div", _members({**choice, "properties": dict(siblings)})))


def _member(schema: Mapping[str, Any], required: bool) -> Html:
    notes = ["required"] if required else []
    notes += ["read-only"] if schema.get("readOnly") else []
    notes += [f"default {_json(schema['default'])}"] if "default" in schema else []
    nested = _members(schema) if schema.get("properties") else Html("")
    quiet = element("span", "".join(f" · {note}" for note in notes), class_="quiet")
    return join_html(_shape(schema), quiet, " ", schema.get("description", ""), nested)


def _shape(schema: Mapping[str, Any]) -> Html:
    """A short description of a schema, with links to named schemas."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2].removesuffix("-write")
        return element("a", name, href="#problems" if name.startswith(_PROBLEMS) else f"#s-{name}")
    if "anyOf" in schema:
        return join_html(_shape(schema["anyOf"][0]), ", or its collections")
    if schema.get("type") == "array":
        return join_html("list of ", _shape(schema.get("items", {})))
    members = schema.get("additionalProperties")
    if schema.get("type") == "object" and members is False and "properties" in schema:
        return join_html("object with ", _listed(element("code", name) for name in schema["properties"]))
    if schema.get("type") == "object" and isinstance(members, dict) and "properties" not in schema:
        return join_html("map of ", _shape(members))
    return join_html(_words(schema))


def _words(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(map(_json, schema["enum"]))
    if "const" in schema:
        return "no value"
    kind = schema.get("type", "any value")
    name = kind if isinstance(kind, str) else kind[0]
    return f"{name} ({schema['format']})" if "format" in schema else name


def _problems() -> Iterable[Html]:
    """Every problem type, with its name as anchor."""
    yield element("p", "The part of a problem's type behind the # is its name here.", class_="quiet")
    kinds = sorted(ALL_PROBLEM_TYPES, key=lambda kind: kind.name)
    yield element(
        "dl", *(join_html(element("dt", kind.name, id=kind.name), element("dd", _problem(kind))) for kind in kinds)
    )


def _problem(kind: type[Problem]) -> Html:
    return join_html(element("b", str(kind.status)), " ", kind.title, " ", _origin(kind))


def _origin(kind: type[Problem]) -> Html:
    """The origin of a problem type."""
    return element("a", "Specification", href=kind.uri()) if kind.uri().startswith("https:") else join_html("Ours.")


def _listed(pieces: Iterable[Html]) -> Html:
    found = list(pieces)
    return join_html(*(join_html(piece, ", ") for piece in found[:-1]), *found[-1:])


def _text(says: str) -> Html:
    """Text in which backticks mark code."""
    return join_html(*(element("code", part) if odd % 2 else part for odd, part in enumerate(says.split("`"))))


def _json(value: Any) -> str:
    """A value as JSON; strings without quotes."""
    return value if isinstance(value, str) else dumps(value).decode()


def _short(name: str) -> str:
    return name.rpartition(".")[2]
