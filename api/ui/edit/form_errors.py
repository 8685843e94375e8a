"""Refusals of the API as messages at the fields of a form (UI-81)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any, Final

from annals.api.ui.edit.document_places import split_message
from annals.api.ui.edit.fields import DOCUMENT, META, OTHERS
from annals.api.ui.registry_model import ModelPlace
from annals.domain.errors import problems
from annals.domain.errors.http_errors import PreconditionFailed
from annals.domain.errors.problems import Problem

_FIRST_NAME: Final = re.compile(r"[^.\[]+")
_ABOUT_DOCUMENT: Final = (problems.FormatViolation, problems.CompatibilityViolation, problems.FormatExternal)
#: The refusal of a new entity that exists.
_EXISTS: Final = PreconditionFailed
_ABOUT_ID: Final = (problems.MalformedId, problems.MismatchedId, problems.VersionidNotAllowed, PreconditionFailed)


def field_errors(problem: Problem, place: ModelPlace, names: Collection[str], document: str = "") -> dict[str, str]:
    """The messages of a refusal by the names of fields; empty for one that is about no field of the form.

    document: that the form has, in which places are named by line and column.
    """
    text = f"There is a {place.singular} with this id." if isinstance(problem, _EXISTS) else problem.text(place.xid)
    messages = "\n".join(_places(problem, document)) or text
    return {name: messages if name == DOCUMENT else text for name in _names(problem, place) if name in names}


def _names(problem: Problem, place: ModelPlace) -> Iterator[str]:
    """The fields that a refusal may be about."""
    if isinstance(problem, _ABOUT_DOCUMENT):
        yield DOCUMENT
    elif isinstance(problem, problems.FormatUnknown):
        yield "format"
    elif isinstance(problem, problems.CompatibilityUnknown):
        yield f"{META}compatibility"
    elif isinstance(problem, _ABOUT_ID):
        yield place.id_name
    elif isinstance(problem, problems.UnknownAttribute):
        yield OTHERS
    else:
        stated = f"{problem.arguments.get('name', '')},{problem.arguments.get('list', '')}"
        for part in stated.split(","):
            if (found := _FIRST_NAME.match(part.strip())) is not None:
                yield found[0]
                yield META + found[0]


def _places(problem: Problem, document: str) -> Iterator[str]:
    """What is wrong with a document, place by place."""
    extensions: dict[str, Any] = dict(problem.extensions or {})
    for each in extensions.get("violations", ()):
        yield _with_place(each["text"], each, document)
    for each in extensions.get("incompatibilities", ()):
        yield _with_place(f"{each['text']} ({each['rule']})", each["version"], document)


def _with_place(text: str, location: dict[str, Any], document: str) -> str:
    message, place = split_message(text, location, document)
    return f"{message} ({place})" if place else message
