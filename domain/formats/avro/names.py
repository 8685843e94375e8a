"""Names of types, fields and symbols: their syntax, and how to form a fullname.

Spec: Avro 1.12, "Names" and "Aliases"; older releases differ in wording only.
"""

from __future__ import annotations

import re
from typing import Any, Final, TypeGuard

from annals.domain.formats.avro.schema import PRIMITIVE_TYPES, invalid_document, shorten_name

_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_FULLNAME: Final = re.compile(rf"{_NAME.pattern}(?:\.{_NAME.pattern})*", re.ASCII)


def is_name(text: Any) -> TypeGuard[str]:
    """Whether a text is a valid name of a field or a symbol."""
    return isinstance(text, str) and _NAME.fullmatch(text) is not None


def fullname(definition: dict[str, Any], pointer: str, namespace: str, *, checks_syntax: bool) -> str:
    """The fullname of a defined type. namespace: the enclosing namespace. Raises: InvalidDocument."""
    name = definition.get("name")
    if not isinstance(name, str):
        raise invalid_document(
            f"a type of kind {definition['type']} needs a name that is a string", pointer, definition
        )
    if "." not in name:
        namespace = definition.get("namespace", namespace)
        if not isinstance(namespace, str):
            raise invalid_document("a namespace has to be a string", f"{pointer}/namespace", namespace)
    full_name = qualify_name(name, namespace)
    if checks_syntax and not _FULLNAME.fullmatch(full_name):
        text = (
            f'"{shorten_name(full_name)}" is not a fullname: it takes letters, digits and _, no digit first, '
            "and single dots"
            " between names"
        )
        raise invalid_document(text, f"{pointer}/name", name)
    if full_name.rpartition(".")[2] in PRIMITIVE_TYPES:
        raise invalid_document(
            f'"{shorten_name(name)}" is the name of a primitive type and may not be defined', f"{pointer}/name", name
        )
    return full_name


def qualify_name(name: str, namespace: str) -> str:
    """A name as a fullname; a name without a dot is in the enclosing namespace `namespace`."""
    return f"{namespace}.{name}" if namespace and "." not in name else name


def aliases(owner: dict[str, Any], pointer: str) -> tuple[str, ...]:
    """The aliases of a type or a field as written. Any strings are allowed, so that an alias can repair a bad name.

    Raises: InvalidDocument.
    """
    if "aliases" not in owner:
        return ()
    alias_names = owner["aliases"]
    if not isinstance(alias_names, list) or not all(isinstance(alias, str) for alias in alias_names):
        raise invalid_document("aliases have to be an array of strings", f"{pointer}/aliases", alias_names)
    return tuple(alias_names)
