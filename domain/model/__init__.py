"""The registry model as data: what a modelsource says, compiled into what decisions ask of it.

Spec: "Registry Model" 1.0-rc4.
"""

from domain.model.compile import compile_model
from domain.model.types import GroupType, Level, Model, ResourceType

__all__ = ["GroupType", "Level", "Model", "ResourceType", "compile_model"]
