"""Documents that others publish, out of packages: each is read, evolved and compared with what it was.

The well-known types come with the compiler. The rest is not needed to run the registry: `pip install
googleapis-common-protos`, and two Java archives that come through Maven.
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

#: What the archives are that have CloudEvents' own document and those of OpenTelemetry.
ARCHIVES = (
    "io.cloudevents:cloudevents-protobuf:4.0.1@jar",
    "io.opentelemetry.proto:opentelemetry-proto:1.3.2-alpha@jar",
)


def test_the_well_known_types() -> None:
    root = Path(str(resources("grpc_tools"))) / "_proto"
    assert through({str(file): file.read_text() for file in root.rglob("*.proto")}) >= 10


def test_googleapis() -> None:
    try:
        found = [file for file in files("googleapis-common-protos") or () if file.suffix == ".proto"]
    except PackageNotFoundError:
        pytest.skip("no published documents of Google: pip install googleapis-common-protos")
    assert through({str(file): Path(str(file.locate())).read_text() for file in found}) >= 40


@pytest.mark.parametrize(("archive", "least"), list(zip(ARCHIVES, (1, 8), strict=True)))
def test_archives(archive: str, least: int) -> None:
    assert through(dict(texts(jars(archive)))) >= least


def texts(archives: list[Path]) -> Iterator[tuple[str, str]]:
    for path in archives:
        with ZipFile(path) as archive:
            for name in archive.namelist():
                if name.endswith(".proto"):
                    yield name, archive.read(name).decode()


def through(documents: dict[str, str]) -> int:
    """How many documents have gone through all of it."""
    for name, text in documents.items():
        said = re.search(r'^(?:syntax|edition) = "(?:proto)?(\d+)";', text, re.MULTILINE)
        evolves(text, f"protobuf/{said[1] if said else 2}", name)
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
    if document.package and not document.imports:  # types of its package may be written without it
        moved = re.sub(rf"(?<![\w.]){re.escape(document.package)}(?=[.;])", "another.one", text)
        renamed = protobuf.parse(moved.encode(), format)
        assert [one.rule for one in protobuf.incompatibilities(renamed, document, "reader")] == ["package-changed"], (
            name
        )
