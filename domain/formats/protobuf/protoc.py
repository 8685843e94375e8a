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
_ERROR_LINE: Final = r"^(?:.*[/\\])?{}:(?:(\d+):(\d+): |\s*)(?!warning: )(.+)$"


@dataclass(frozen=True, slots=True)
class CompilerError:
    """An error of the compiler, with line and column, counted from 1, where it reports them."""

    text: str
    line: int | None = None
    column: int | None = None


@dataclass(frozen=True, slots=True)
class CompilerResult:
    """The descriptor of the document, with lines, or the errors in it. imports: those of what it imports."""

    descriptor: FileDescriptorProto | None
    errors: tuple[CompilerError, ...] = ()
    imports: tuple[FileDescriptorProto, ...] = ()


def compile_text(
    text: str,
    other_documents: Mapping[str, str] | None = None,
    file_name: str = FILE_NAME,
    *,
    with_imports: bool = False,
) -> CompilerResult:
    """The result of compiling a document. A millisecond for 2 kB.

    other_documents: further documents by file name, which the caller has checked. file_name: of the document.
    with_imports: return the descriptors of its imports as well.
    """
    with TemporaryDirectory(prefix="protobuf-") as name:
        folder = Path(name)
        for other, content in {**(other_documents or {}), file_name: text}.items():
            (folder / "in" / other).parent.mkdir(parents=True, exist_ok=True)
            (folder / "in" / other).write_text(content, encoding="utf-8", newline="")
        succeeded = _run_compiler(folder, file_name, with_imports)
        if succeeded:
            try:
                *imports, descriptor = FileDescriptorSet.FromString((folder / "out").read_bytes()).file
            except (DecodeError, ValueError, OSError):
                return CompilerResult(None, (CompilerError("the compiler gave no descriptor"),))
            return CompilerResult(descriptor, imports=tuple(imports))
        with (folder / "said").open("rb") as error_file:
            error_output = error_file.read(_MAX_OUTPUT_BYTES).decode("utf-8", "replace")
    errors = tuple(_compiler_errors(error_output, file_name))
    return CompilerResult(None, errors or (CompilerError("the compiler refuses the document"),))


def _run_compiler(folder: Path, file_name: str, with_imports: bool) -> bool:
    arguments = [
        "protoc",
        f"-I{folder / 'in'}",
        f"-I{_bundled_protos()}",
        "--include_source_info",
        *(["--include_imports"] if with_imports else []),
        f"-o{folder / 'out'}",
        file_name,
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


def _compiler_errors(error_output: str, file_name: str) -> Iterator[CompilerError]:
    for match in re.finditer(_ERROR_LINE.format(re.escape(file_name)), error_output, re.MULTILINE):
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
