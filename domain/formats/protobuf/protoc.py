"""Runs the Protobuf compiler in this process.

The compiler reads and writes files and prints to the process's standard error. So this is the only file of the format
with side effects: a temporary directory for the time of a call, and file descriptor 2, which is restored afterwards.
Only one call at a time may run in a process. The compiler opens only that directory and its bundled files
(`google/protobuf/*.proto`): it refuses `..` in an import, and looks up absolute paths inside of the two.
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

#: The document's file name for the compiler, and the maximum bytes of its error output that are read.
FILE_NAME: Final = "schema.proto"
_MAX_OUTPUT_BYTES: Final = 64 * 1024
_ERROR_LINE: Final = re.compile(
    rf"^(?:.*[/\\])?{re.escape(FILE_NAME)}:(?:(\d+):(\d+): |\s*)(?!warning: )(.+)$", re.MULTILINE
)


@dataclass(frozen=True, slots=True)
class CompilerError:
    """An error of the compiler, with line and column, counted from 1, where it reports them."""

    text: str
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class CompilerResult:
    """The descriptor of the document, with lines, or the errors in it."""

    descriptor: FileDescriptorProto | None
    errors: tuple[CompilerError, ...] = ()


def compile_text(text: str, other_documents: Mapping[str, str] | None = None) -> CompilerResult:
    """The result of compiling a document. other_documents: further documents by file name. A millisecond for 2 kB."""
    with TemporaryDirectory(prefix="protobuf-") as name:
        folder = Path(name)
        for other, content in (other_documents or {}).items():
            (folder / other).write_text(content, encoding="utf-8", newline="")
        (folder / FILE_NAME).write_text(text, encoding="utf-8", newline="")
        succeeded = _run_compiler(folder)
        if succeeded:
            try:
                return CompilerResult(FileDescriptorSet.FromString((folder / "out").read_bytes()).file[-1])
            except (DecodeError, IndexError, OSError):
                return CompilerResult(None, (CompilerError("the compiler gave no descriptor"),))
        with (folder / "said").open("rb") as error_file:
            error_output = error_file.read(_MAX_OUTPUT_BYTES).decode("utf-8", "replace")
    return CompilerResult(
        None, tuple(_compiler_errors(error_output)) or (CompilerError("the compiler refuses the document"),)
    )


def _run_compiler(folder: Path) -> bool:
    arguments = [
        "protoc",
        f"-I{folder}",
        f"-I{_bundled_protos()}",
        "--include_source_info",
        f"-o{folder / 'out'}",
        FILE_NAME,
    ]
    with (folder / "said").open("wb") as error_file:
        if sys.stderr is not None:
            sys.stderr.flush()
        original_stderr = os.dup(2)
        os.dup2(error_file.fileno(), 2)
        try:
            status: int = _protoc_compiler.run_main([argument.encode() for argument in arguments])
            return status == 0
        finally:
            os.dup2(original_stderr, 2)
            os.close(original_stderr)


def _compiler_errors(error_output: str) -> Iterator[CompilerError]:
    for match in _ERROR_LINE.finditer(error_output):
        line, column, text = match.groups()
        yield CompilerError(text.strip().rstrip("."), int(line) if line else None, int(column) if column else None)


@cache
def _bundled_protos() -> Path:
    """The folder of the compiler's bundled documents."""
    return Path(str(files("grpc_tools"))) / "_proto"


@cache
def well_known_imports() -> frozenset[str]:
    """The paths of the bundled documents, which every Protobuf document may import."""
    root = _bundled_protos()
    return frozenset(file.relative_to(root).as_posix() for file in root.glob("google/protobuf/**/*.proto"))
