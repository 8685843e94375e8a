"""Files that pages load. Their names have a hash of their content, so browsers keep them for good (UI-68)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from annals.api.http.response import Response

STATIC: Final = "static"
_FOLDER: Final = Path(__file__).parent / STATIC
_TYPES: Final = {".css": b"text/css; charset=utf-8", ".js": b"text/javascript; charset=utf-8"}
#: What a module of JavaScript imports from another one of ours.
_IMPORT: Final = re.compile(rb'(?<=from ")\./([a-z_]+\.js)(?=")')
_FOREVER: Final = (b"cache-control", b"public, max-age=31536000, immutable")
_SAME_ORIGIN: Final = (b"cross-origin-resource-policy", b"same-origin")
_HASH_CHARACTERS: Final = 16


class _StaticFile(NamedTuple):
    """One file. name: with its hash."""

    name: str
    type: bytes
    content: bytes


def static_path(name: str) -> str:
    """The path of a file, below the registry's root. name: without a hash."""
    return f"/ui/{STATIC}/{_files()[name].name}"


def static_response(name: str) -> Response | None:
    """The file; None if there is none. name: with its hash."""
    found = next((file for file in _files().values() if file.name == name), None)
    return found and Response(200, [(b"content-type", found.type), _FOREVER, _SAME_ORIGIN], found.content)


@cache
def _files() -> Mapping[str, _StaticFile]:
    """All files by their names without a hash."""
    return {path.name: _file(path.name) for path in sorted(_FOLDER.iterdir()) if path.suffix in _TYPES}


@cache
def _file(name: str) -> _StaticFile:
    """One file. What a module imports has its hash in its name too, so a changed one gives both new names."""
    path = _FOLDER / name
    content = _IMPORT.sub(lambda found: b"./" + _file(found[1].decode()).name.encode(), path.read_bytes())
    hash = hashlib.sha256(content).hexdigest()[:_HASH_CHARACTERS]
    return _StaticFile(f"{path.stem}.{hash}{path.suffix}", _TYPES[path.suffix], content)
