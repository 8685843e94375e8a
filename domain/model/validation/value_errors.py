"""Errors of a value, before its place and its entity are known.

A check raises InvalidValue. Each container of the value prepends its own step to the path. The Level at the top
converts the error to a problem. So no path is built for valid values.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from annals.domain.errors.problems import (
    InvalidAttribute,
    MalformedXid,
    MalformedXref,
    Problem,
    RequiredAttributeMissing,
    UnknownAttribute,
)
from annals.domain.values import dot_path

ValuePath = tuple[str | int, ...]


class InvalidValue(Exception):
    """The value at `path` breaks a rule of its definition; `detail` says which, as a clause without a full stop."""

    def __init__(self, detail: str, path: ValuePath = ()) -> None:
        super().__init__(detail)
        self.detail = detail
        self.path = path

    def in_container(self, step: str | int) -> InvalidValue:
        """The same error, with the path from the container of the value."""
        self.path = (step, *self.path)
        return self

    def problem(self, xid: str) -> Problem:
        """The problem that a client receives."""
        return InvalidAttribute(xid, name=dot_path.text(self.path), error_detail=self.detail)


class UnknownName(InvalidValue):
    """The model does not know the name."""

    def problem(self, xid: str) -> Problem:
        return UnknownAttribute(xid, name=dot_path.text(self.path))


class MissingValues(InvalidValue):
    """Required attributes have no value; `paths` are relative to the place where the error is raised."""

    def __init__(self, paths: Iterable[ValuePath]) -> None:
        super().__init__("a required attribute has no value")
        self.paths = tuple(paths)

    def in_container(self, step: str | int) -> InvalidValue:
        self.paths = tuple((step, *path) for path in self.paths)
        return self

    def problem(self, xid: str) -> Problem:
        return RequiredAttributeMissing(xid, list=",".join(dot_path.text(path) for path in self.paths))


class InvalidXid(InvalidValue):
    """The value is not an xid of this registry: bad syntax, or a type that the model does not have."""

    def __init__(self, value: str, detail: str) -> None:
        super().__init__(detail)
        self.value = value

    def problem(self, xid: str) -> Problem:
        return MalformedXid(xid=self.value, error_detail=self.detail)


class InvalidXref(InvalidXid):
    """The value cannot be the target of an xref."""

    def problem(self, xid: str) -> Problem:
        return MalformedXref(xref=self.value, error_detail=self.detail)


NO_VALUE: Final = "null is not a value"
