"""The Protobuf compiler, run in this process.

It takes and gives files and writes to the process's standard error, so this is the one file of the format with a hand
on the outside: a directory of its own that lives as long as the call, and the descriptor 2, which comes back after it.
One call at a time in a process. The compiler opens nothing but that directory and the files that it carries itself
(`google/protobuf/*.proto`): it refuses `..` in an import, and looks for absolute paths below the two.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from google.protobuf.descriptor_pb2 import (
    FileDescriptorProto,
    FileDescriptorSet,
)
from google.protobuf.message import DecodeError
from grpc_tools import _protoc_compiler

#: How the compiler calls the document, and how much of what it says is looked at.
FILE_NAME: Final = "schema.proto"
_HEARD: Final = 64 * 1024
_ERROR: Final = re.compile(
    rf"^(?:.*[/\\])?{re.escape(FILE_NAME)}:(?:(\d+):(\d+): |\s*)(?!warning: )(.+)$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class CompilerError:
    """What the compiler finds wrong: the line and column, counted from 1, where it knows them."""

    text: str
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class CompilerResult:
    """The descriptor of the document, with lines, or what is wrong with it."""

    descriptor: FileDescriptorProto | None
    flaws: tuple[CompilerError, ...] = ()


def compile_text(text: str, others: Mapping[str, str] | None = None) -> CompilerResult:
    """The document compiled, beside other documents by their file names. A millisecond for 2 kB."""
    with TemporaryDirectory(prefix="protobuf-") as name:
        folder = Path(name)
        for other, content in (others or {}).items():
            (folder / other).write_text(content, encoding="utf-8", newline="")
        (folder / FILE_NAME).write_text(text, encoding="utf-8", newline="")
        done = _run(folder)
        if done:
            try:
                return CompilerResult(FileDescriptorSet.FromString((folder / "out").read_bytes()).file[-1])
            except (DecodeError, IndexError, OSError):
                return CompilerResult(None, (CompilerError("the compiler gave no descriptor"),))
        with (folder / "said").open("rb") as said:
            heard = said.read(_HEARD).decode("utf-8", "replace")
    return CompilerResult(None, tuple(_compiler_errors(heard)) or (CompilerError("the compiler refuses the document"),))


def _run(folder: Path) -> bool:
    arguments = [
        "protoc",
        f"-I{folder}",
        f"-I{_bundled_protos()}",
        "--include_source_info",
        f"-o{folder / 'out'}",
        FILE_NAME,
    ]
    with (folder / "said").open("wb") as said:
        if sys.stderr is not None:
            sys.stderr.flush()
        kept = os.dup(2)
        os.dup2(said.fileno(), 2)
        try:
            status: int = _protoc_compiler.run_main([argument.encode() for argument in arguments])
            return status == 0
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _compiler_errors(said: str) -> Iterator[CompilerError]:
    for match in _ERROR.finditer(said):
        line, column, text = match.groups()
        yield CompilerError(text.strip().rstrip("."), int(line) if line else None, int(column) if column else None)


@cache
def _bundled_protos() -> Path:
    """Where the compiler's own documents are."""
    return Path(str(files("grpc_tools"))) / "_proto"


@cache
def well_known_imports() -> frozenset[str]:
    """The documents that every Protobuf document may import, by their paths."""
    root = _bundled_protos()
    return frozenset(file.relative_to(root).as_posix() for file in root.glob("google/protobuf/**/*.proto"))
