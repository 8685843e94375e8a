"""The registry model as data: a modelsource, compiled for decisions. Spec: "Registry Model" 1.0-rc4.

How a new model affects stored entities is in `decisions/replace_model.py`.
Begin with `compile.py`, `types.py` and `level.py`.
"""

from annals.domain.model.compile import compile_model
from annals.domain.model.types import GroupType, Level, Model, ResourceType

__all__ = ["GroupType", "Level", "Model", "ResourceType", "compile_model"]
