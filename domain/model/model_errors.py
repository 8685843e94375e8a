"""Errors of a model, created with `model_error`, which names the place, and checks of plain JSON shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from annals.domain.errors.problems import ModelError, Problem
from annals.domain.model import compiled_attributes
from annals.domain.model.validation import values
from annals.domain.model.validation.value_errors import InvalidValue
from annals.domain.values import dot_path

#: A place in a model, as steps from its root.
ModelPath = tuple[str | int, ...]

#: Aspects of older drafts, and their replacements.
_RENAMED_ASPECTS: Final = {
    "compatiblewith": "use its new name, modelcompatiblewith",
    "matchcase": "the specification no longer has it; remove it",
    "setdefaultversionsticky": 'give defaultversionsticky an enum of one value in "metaattributes" instead',
}


def model_error(model_path: ModelPath, detail: str) -> Problem:
    """The problem with the value at `model_path`; `detail` is a clause about it."""
    return ModelError(error_detail=f"{dot_path.text(model_path) or 'the model'}: {detail}")


def object_members(value: Any, model_path: ModelPath) -> dict[str, Any]:
    """The members of a JSON object that have a value. Raises: ModelError if it is not an object."""
    if not isinstance(value, Mapping):
        raise model_error(model_path, "it needs to be an object")
    return {name: member for name, member in value.items() if member is not None}


def checked_aspects(value: Any, kinds: Mapping[str, str], model_path: ModelPath) -> dict[str, Any]:
    """The aspects of a definition that have a value, each of its kind. kinds: kinds by name (see `check_kind`).

    Raises: ModelError for an unknown aspect, or a value of another kind.
    """
    aspects = object_members(value, model_path)
    for name, aspect_value in aspects.items():
        if name not in kinds:
            hint = f", {_RENAMED_ASPECTS[name]}" if name in _RENAMED_ASPECTS else ""
            raise model_error((*model_path, name), f"the model language has no such aspect here{hint}")
        check_kind(aspect_value, kinds[name], (*model_path, name))
    return aspects


def check_kind(value: Any, kind: str, model_path: ModelPath) -> None:
    """Checks the kind of a value: a scalar data type, `nonempty`, `labels`, `array`, `object` or `any`.

    Raises: ModelError.
    """
    try:
        match kind:
            case "any":
                pass
            case "object":
                object_members(value, model_path)
            case "array":
                if not isinstance(value, list):
                    raise InvalidValue("it is not an array")
            case "labels":
                _CHECK_LABELS.check(value)
            case "nonempty":
                if not _CHECK_TEXT(value):
                    raise InvalidValue("it is empty")
            case _:
                values.scalar_check(kind, {})(value)
    except InvalidValue as invalid_value:
        raise model_error((*model_path, *invalid_value.path), invalid_value.detail) from None


_CHECK_TEXT: Final = values.scalar_check("string", {})
_CHECK_LABELS: Final = compiled_attributes.compile_definition(
    "labels", {"type": "map", "item": {"type": "string"}}, compiled_attributes.AttributeRules({})
)
