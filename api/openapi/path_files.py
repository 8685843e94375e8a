"""Loads the OpenAPI paths of a surface from the `openapi.yaml` in its folder.

Such a file is OpenAPI with these abbreviations:

- `$NAME`, in capitals, is a value of the code: the value itself, or written out where it is a part of a text.
- A parameter is in the query and a string, unless it says otherwise; one in the path is required.
- `headers` of a response is a list of names of components.
- `dryrun: true` of a response adds that of a dry run; without other members, the response is only that of a dry run.
- A schema with a `title` becomes the component of that name.
- `refused` of an operation is a list of statuses; `problems` is the prefix of the responses that they refer to.
- `tag` and `problems` of the file hold for all of its operations. Other members hold what several paths share.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources import files
from typing import Any, Final

import yaml

from annals.api.openapi.builders import STRING_SCHEMA, Schema, or_dry_run, response_headers
from annals.api.openapi.named_schemas import NamedSchemas, move_named_schemas
from annals.api.openapi.problems import OWN_PROBLEM_NAME, error_references

FILE_NAME: Final = "openapi.yaml"
_PLACEHOLDER: Final = re.compile(r"\$([A-Z_]+)")
#: The C implementation, where PyYAML was built with it.
_LOADER: Final[type[yaml.SafeLoader]] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def load_paths(package: str, values: Mapping[str, Any]) -> NamedSchemas:
    """The path items of a surface, and their schemas with names.

    package: its dotted name. values: by placeholder, without the dollar sign.
    """
    return move_named_schemas(path_items(fill_placeholders(load_file(package), values)))


def load_file(package: str) -> Schema:
    """The `openapi.yaml` of a package as it is."""
    found: Schema = yaml.load(files(package).joinpath(FILE_NAME).read_bytes(), _LOADER)
    return found


def path_items(file: Schema) -> dict[str, Schema]:
    """The path items of a file whose placeholders are filled, with the other abbreviations written out."""
    common: Schema = {"problems": OWN_PROBLEM_NAME, **{key: file[key] for key in ("tag", "problems") if key in file}}
    return {path: _path_item(item, common) for path, item in file["paths"].items()}


def fill_placeholders(value: Any, values: Mapping[str, Any]) -> Any:
    """The value with all placeholders filled. Raises: KeyError for a placeholder without a value."""
    if isinstance(value, dict):
        return {fill_placeholders(name, values): fill_placeholders(each, values) for name, each in value.items()}
    if isinstance(value, list):
        return [fill_placeholders(each, values) for each in value]
    if not isinstance(value, str):
        return value
    whole = _PLACEHOLDER.fullmatch(value)
    return values[whole[1]] if whole else _PLACEHOLDER.sub(lambda found: _placeholder_text(values[found[1]]), value)


def _placeholder_text(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return value if isinstance(value, str) else ", ".join(value)


def _path_item(item: Schema, common: Schema) -> Schema:
    return {
        key: [_parameter(**each) for each in row] if key == "parameters" else _operation(**{**common, **row})
        for key, row in item.items()
    }


def _operation(
    *, responses: Schema, problems: str, refused: list[int], tag: str | None = None, **operation: Any
) -> Schema:
    found = {str(status): _response(**response) for status, response in responses.items()}
    tags = {"tags": [tag]} if tag else {}
    if "parameters" in operation:
        operation["parameters"] = [_parameter(**each) for each in operation["parameters"]]
    return {**operation, **tags, "responses": {**found, **error_references(problems, refused)}}


def _parameter(*, name: str, schema: Schema = STRING_SCHEMA, **row: Any) -> Schema:
    place = row.pop("in", "query")
    return {"name": name, "in": place, **({"required": True} if place == "path" else {}), **row, "schema": schema}


def _response(*, dryrun: bool = False, **response: Any) -> Schema:
    found = {name: response_headers(*row) if name == "headers" else row for name, row in response.items()}
    return or_dry_run(found) if dryrun else found


#: The parts that the documents of all APIs have: `headers` and `schemas`.
COMPONENTS: Final[Schema] = move_named_schemas(load_file("annals.api.openapi")).part
