"""How a model is refused, with a `model_error` that names the place, and the tests of plain JSON shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from domain import dotpath
from domain.model import shape, values
from domain.model.flaws import Flaw
from domain.problems import ModelError, Problem

#: A place in a model, as steps from its root.
Place = tuple[str | int, ...]

#: Aspects of older drafts, and what has become of them.
_OLD: Final = {
    "compatiblewith": "it is called modelcompatiblewith now",
    "matchcase": "it is gone",
    "setdefaultversionsticky": 'give defaultversionsticky an enum of one value in "metaattributes" instead',
}


def refusal(place: Place, detail: str) -> Problem:
    """The problem with what is at `place`; `detail` is a clause about it."""
    return ModelError(error_detail=f"{dotpath.text(place) or 'the model'}: {detail}")


def members(value: Any, place: Place) -> dict[str, Any]:
    """The members of a JSON object that have a value. Raises: ModelError when it is none."""
    if not isinstance(value, Mapping):
        raise refusal(place, "it needs to be an object")
    return {name: member for name, member in value.items() if member is not None}


def aspects(value: Any, known: Mapping[str, str], place: Place) -> dict[str, Any]:
    """The aspects of a definition that have a value, each of its kind. known: kinds by name (see KINDS).

    Raises: ModelError for an unknown aspect, or a value of another kind.
    """
    given = members(value, place)
    for name, each in given.items():
        if name not in known:
            hint = f", {_OLD[name]}" if name in _OLD else ""
            raise refusal((*place, name), f"the model language has no such aspect here{hint}")
        kind(each, known[name], (*place, name))
    return given


def kind(value: Any, wanted: str, place: Place) -> None:
    """Refuses a value that is not of a kind: a scalar data type, `nonempty`, `labels`, `array`, `object` or `any`.

    Raises: ModelError.
    """
    try:
        match wanted:
            case "any":
                pass
            case "object":
                members(value, place)
            case "array":
                if not isinstance(value, list):
                    raise Flaw("it is not an array")
            case "labels":
                _LABELS.check(value)
            case "nonempty":
                if not _TEXT(value):
                    raise Flaw("it is empty")
            case _:
                values.scalar(wanted, {})(value)
    except Flaw as flaw:
        raise refusal((*place, *flaw.path), flaw.detail) from None


_TEXT: Final = values.scalar("string", {})
_LABELS: Final = shape.codec("labels", {"type": "map", "item": {"type": "string"}}, shape.Rules({}))
