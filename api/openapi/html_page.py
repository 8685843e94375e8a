"""The OpenAPI document, and the list of paths, as HTML pages without scripts and external resources."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from functools import cache
from hashlib import sha256
from itertools import groupby
from typing import TYPE_CHECKING, Any, Final

from annals.api.openapi.problem_causes import problem_causes
from annals.api.openapi.problems import ALL_PROBLEM_TYPES, OWN_PROBLEM_NAME, PROBLEM_NAME
from annals.domain.values.json_text import unquoted

if TYPE_CHECKING:
    from jinja2 import Environment

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


def render_page(document: Mapping[str, Any]) -> str:
    """The page. document: an OpenAPI document of this registry."""
    tags = {tag["name"]: tag for tag in document["tags"]}
    paths = groupby(document["paths"].items(), key=lambda row: _tag_of(row[1]))
    return (
        _environment()
        .get_template("page.html")
        .render(
            info=document["info"],
            base=document["servers"][0]["url"],
            paths_by_tag=((tags[name], group) for name, group in paths),
            components=document["components"],
            problems=sorted(ALL_PROBLEM_TYPES, key=lambda kind: kind.name),
            causes=problem_causes(),
        )
    )


def render_index(index: Mapping[str, Any], base_url: str) -> str:
    """The page of the list that `path_index.py` makes."""
    return _environment().get_template("index.html").render(index=index, base=base_url)


def _tag_of(item: Mapping[str, Any]) -> str:
    return next(str(item[method]["tags"][0]) for method in _METHODS if method in item)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader  # only `/-/docs` needs it
    from markupsafe import Markup

    environment = Environment(loader=PackageLoader("annals.api.openapi", ""), autoescape=True)
    environment.filters["unquoted"] = unquoted
    environment.globals.update(methods=_METHODS, problem_names=(PROBLEM_NAME, OWN_PROBLEM_NAME), style=Markup(STYLE))
    return environment
