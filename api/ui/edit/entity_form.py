"""The form of an entity, as a page shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

from annals.api.http.response import Response
from annals.api.ui.edit.check_result import CheckOutcome
from annals.api.ui.edit.dry_runs import FutureEvents
from annals.api.ui.edit.entity_state import EntityState
from annals.api.ui.edit.fields import (
    DOCUMENT,
    DOCUMENT_FILE,
    META,
    OTHERS,
    Field,
    FieldError,
    entity_fields,
    meta_fields,
)
from annals.api.ui.edit.form_errors import field_errors
from annals.api.ui.edit.request_body import document_text
from annals.api.ui.forms import Form
from annals.api.ui.page_context import PageContext
from annals.api.ui.problem_page import ShownProblem, shown_problem
from annals.api.ui.registry_model import ModelPlace
from annals.domain.errors.http_errors import PreconditionFailed
from annals.domain.errors.problems import NotFound, Problem

_MAX_FILE_NAME: Final = 200


class ShownField(NamedTuple):
    """A field with its text, and the message at it."""

    field: Field
    text: str
    error: str


@dataclass(frozen=True)
class EntityForm:
    """place: of the entity, or of the collection that it is to be a member of. base: what the form began with.

    form: what was sent; None for a form that is shown first. cancel: the URL of the page that it comes from.
    """

    title: str
    place: ModelPlace
    is_new: bool
    base: EntityState
    cancel: str
    form: Form | None = None
    alert: ShownProblem | None = None
    errors: Mapping[str, str] | None = None
    check: CheckOutcome | None = None
    events: FutureEvents | None = None

    @property
    def fields(self) -> list[Field]:
        """The fields of the entity, then those of its meta."""
        own = entity_fields(self.place, self.base.formats, is_new=self.is_new)
        return [*own, *meta_fields(self.place, self.base.formats)]

    def text(self, name: str) -> str:
        """The text of a field: what was sent, else what the form began with."""
        return self.form.get(name) if self.form is not None else self.base.text(name)

    @property
    def file_name(self) -> str:
        """The name of the file that was chosen; empty without one."""
        return self.form.file_name(DOCUMENT_FILE)[:_MAX_FILE_NAME] if self.form is not None else ""

    def shown(self, *, of_meta: bool) -> list[ShownField]:
        """The fields of the entity, or those of the group "Meta"."""
        errors = self.errors or {}
        return [
            ShownField(each, self.text(each.name), errors.get(each.name, ""))
            for each in self.fields
            if each.name.startswith(META) == of_meta
        ]

    def refused(self, page: PageContext, problem: Problem) -> EntityForm:
        """The form with a refusal of the API."""
        names = {each.name for each in self.fields} | ({DOCUMENT} if self.place.has_document else set())
        if isinstance(problem, PreconditionFailed) and not self.is_new:
            alert = shown_problem(NotFound(self.place.xid), page.asked)
            return replace(self, alert=alert._replace(title="Somebody has deleted this since the form was loaded."))
        errors = field_errors(problem, self.place, names, document_text(self.form) if self.form else "")
        alert = shown_problem(problem, page.asked)
        if isinstance(problem, PreconditionFailed):
            alert = alert._replace(title=errors[self.place.id_name], cure="Choose another id, or edit that one.")
        return replace(self, alert=alert, errors=errors)

    def mistaken(self, error: FieldError) -> EntityForm:
        """The form with a text that is no value of its field."""
        return replace(self, errors={error.name: error.text})

    async def render(self, page: PageContext, status: int = 200) -> Response:
        """The page."""
        values: dict[str, Any] = {
            "form": self,
            "fields": self.shown(of_meta=False),
            "meta": self.shown(of_meta=True),
            "document": self.text(DOCUMENT),
            "document_error": (self.errors or {}).get(DOCUMENT, ""),
            "others_name": OTHERS,
            "file_name": self.file_name,
        }
        return await page.render("edit/form.html", self.title, status, **values)
