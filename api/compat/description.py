"""OpenAPI documents of the two older APIs."""

from __future__ import annotations

from api.answer import Answer
from api.compat.answers import json_answer
from api.request import Request
from domain.compat.family import Family


def description(request: Request, family: Family) -> Answer:
    """The document of one of them."""
    return json_answer(request, 200, {})
