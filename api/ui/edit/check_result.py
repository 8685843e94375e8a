"""The region "Check result": whether the document of a form is valid, and compatible (UI-82). Nothing is written."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from annals.api.ui.edit.document_places import place_text, split_message
from annals.api.ui.edit.fields import META
from annals.api.ui.edit.request_body import document_bytes, document_text
from annals.api.ui.forms import Form
from annals.api.ui.page_context import PageContext
from annals.api.ui.problem_page import shown_problem
from annals.api.ui.registry_model import ModelPlace
from annals.domain.errors.problems import Problem


class Violation(NamedTuple):
    """A place in the document, and what is wrong there. other: the place that it does not fit, in another Version."""

    text: str
    rule: str
    place: str
    fragment: str
    other: str
    other_fragment: str


class CheckOutcome(NamedTuple):
    """What the region says. words: "Valid" and the like, each with a class of the stylesheet."""

    words: list[tuple[str, str]]
    violations: list[Violation]
    note: str


async def check_document(page: PageContext, place: ModelPlace, form: Form, versionid: str | None) -> CheckOutcome:
    """The outcome for the document of a form. versionid: of the stored Version whose document it replaces."""
    resource = "/" + "/".join(place.segments[:4]) if len(place.segments) > 3 else f"{place.xid}/new"
    query = {
        "format": form.get("format") or None,
        "compatibility": form.get(f"{META}compatibility") or None,
        "version": versionid,
    }
    try:
        answer = await page.send(
            "POST", f"/-/check{resource}", query, document_bytes(form), content_type="application/octet-stream"
        )
    except Problem as problem:
        return CheckOutcome([], [], shown_problem(problem, page.asked).title)
    return _outcome(answer.json, document_text(form))


def _outcome(report: Mapping[str, Any], document: str) -> CheckOutcome:
    words = [("Valid", "good") if report["valid"] else ("Not valid", "bad")]
    if report["compatible"] is not None:
        words.append(("Compatible", "good") if report["compatible"] else ("Not compatible", "bad"))
    violations = [
        Violation(text, "", place, each.get("fragment", ""), "", "")
        for each in report["violations"]
        for text, place in (split_message(each["text"], each, document),)
    ]
    violations += [
        Violation(
            each["text"],
            each["rule"],
            place_text(each["version"], document),
            each["version"].get("fragment", ""),
            f"Version {each['ancestor']['versionid']}, {place_text(each['ancestor'])}",
            each["ancestor"].get("fragment", ""),
        )
        for each in report["incompatibilities"]
    ]
    return CheckOutcome(words, violations, _note(report))


def _note(report: Mapping[str, Any]) -> str:
    if report["reason"]:
        return f"Not compared: {report['reason']}."
    if report["compatible"] is None:
        return "" if report["compatibility"] is None or not report["valid"] else "There is nothing to compare with."
    if not report["against"]:
        return "There is nothing to compare with."
    return f"Compared with {', '.join(report['against'])}, {report['compatibility']}."
