"""Published documents, from packages: each is parsed, changed and compared with the original.

The well-known types come with the compiler. The others are from the package googleapis-common-protos (pip) and from two
Java archives (Maven), which the registry itself does not need.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, files
from importlib.resources import files as resources
from pathlib import Path
from zipfile import ZipFile

import pytest

from annals.domain.formats import protobuf
from tests.support.downloads.maven import jars

#: The archives with the document of CloudEvents and with those of OpenTelemetry.
ARCHIVES = (
    "io.cloudevents:cloudevents-protobuf:4.0.1@jar",
    "io.opentelemetry.proto:opentelemetry-proto:1.3.2-alpha@jar",
)


def test_the_well_known_types() -> None:
    root = Path(str(resources("grpc_tools"))) / "_proto"
    assert check_all({str(file): file.read_text() for file in root.rglob("*.proto")}) >= 10


def test_googleapis() -> None:
    try:
        found = [file for file in files("googleapis-common-protos") or () if file.suffix == ".proto"]
    except PackageNotFoundError:
        pytest.skip("no published documents of Google: pip install googleapis-common-protos")
    assert check_all({str(file): Path(str(file.locate())).read_text() for file in found}) >= 40


@pytest.mark.parametrize(("archive", "least"), list(zip(ARCHIVES, (1, 8), strict=True)))
def test_archives(archive: str, least: int) -> None:
    assert check_all(dict(texts(jars(archive)))) >= least


def texts(archives: list[Path]) -> Iterator[tuple[str, str]]:
    for path in archives:
        with ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(".proto"):
                    yield name, archive.read(name).decode()


def check_all(documents: dict[str, str]) -> int:
    """Checks each document; returns their number."""
    for name, text in documents.items():
        declaration = re.search(r'^(?:syntax|edition) = "(?:proto)?(\d+)";', text, re.MULTILINE)
        evolves(text, f"protobuf/{declaration[1] if declaration else 2}", name)
    return len(documents)


def evolves(text: str, format: str, name: str) -> None:
    document = protobuf.parse(text.encode(), format)
    assert protobuf.canonical_form(document) == protobuf.canonical_form(
        protobuf.parse(b"//\n" + text.encode(), format)
    ), name
    assert not protobuf.incompatibilities(document, document, "reader"), name
    assert not protobuf.incompatibilities(document, document, "writer"), name
    lines = text.split("\n")
    for message in document.messages.values():
        if not message.line or not re.fullmatch(r"\s*message \w+ \{", lines[message.line - 1]):
            continue
        label = "" if 'syntax = "proto3"' in text or "edition" in format else "optional "
        more = [*lines]
        more[message.line - 1] += f" {label}string a_field_of_ours = 991;"
        grown = protobuf.parse("\n".join(more).encode(), format)
        assert not protobuf.incompatibilities(grown, document, "reader"), name
        assert not protobuf.incompatibilities(document, grown, "writer"), name
        (back,) = protobuf.incompatibilities(document, grown, "reader")
        assert (back.rule, back.writer and back.writer.line) == ("field-removed-not-reserved", message.line), name
        break
    if document.package and not document.imports:  # the text may have the package's types without its name
        moved = re.sub(rf"(?<![\w.]){re.escape(document.package)}(?=[.;])", "another.one", text)
        renamed = protobuf.parse(moved.encode(), format)
        assert [one.rule for one in protobuf.incompatibilities(renamed, document, "reader")] == ["package-changed"], (
            name
        )
