"""Verdicts of another registry about two documents: the checkers of Apicurio Registry, in one JVM per test process.

They need a Java development kit, and Maven once; without these, the tests that use them are skipped with that reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final, Literal

from tests.support.downloads.maven import Checker

#: The newest release that is published for all three formats. Its parent POM is not published, so its jars are fetched
#: without dependencies, and their dependencies are listed here.
ARTIFACTS: Final = (
    "io.apicurio:apicurio-registry-common:3.0.9@jar",
    "io.apicurio:apicurio-registry-schema-util-common:3.0.9@jar",
    "io.apicurio:apicurio-registry-schema-util-avro:3.0.9@jar",
    "io.apicurio:apicurio-registry-schema-util-json:3.0.9@jar",
    "io.apicurio:apicurio-registry-schema-util-protobuf:3.0.9@jar",
    "io.apicurio:apicurio-registry-protobuf-schema-utilities:3.1.7",
    "com.google.protobuf:protobuf-java-util:4.33.4",
    "com.fasterxml.jackson.dataformat:jackson-dataformat-yaml:2.18.2",
    "com.fasterxml.jackson.datatype:jackson-datatype-json-org:2.18.2",
    "com.fasterxml.jackson.datatype:jackson-datatype-jdk8:2.18.2",
    "com.fasterxml.jackson.datatype:jackson-datatype-jsr310:2.18.2",
    "com.fasterxml.jackson.module:jackson-module-parameter-names:2.18.2",
    "commons-codec:commons-codec:1.17.0",
    "org.slf4j:slf4j-api:2.0.13",
    "org.apache.avro:avro:1.12.0",
    "com.github.erosb:everit-json-schema:1.14.5",
    "com.github.erosb:json-sKema:0.22.0",
    "io.vertx:vertx-json-schema:4.5.13",
)
Form = Literal["avro", "json", "protobuf"]
Mode = Literal["backward", "forward", "full"]


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether the newer document may follow the older ones, and the differences that forbid it."""

    compatible: bool
    differences: tuple[str, ...]


class Refused(Exception):
    """The checker could not read a document; the message is that of the checker."""


def check(format: Form, mode: Mode, older: str | Sequence[str], newer: str) -> Answer:
    """Returns the verdict on texts of documents, `older` from the oldest. Skips the test if the checker is missing.

    Raises: Refused.
    """
    texts = [older] if isinstance(older, str) else list(older)
    answer = _checker().ask({"format": format, "mode": mode, "older": texts, "newer": newer})
    if "error" in answer:
        raise Refused(answer["error"])
    return Answer(answer["compatible"], tuple(answer["differences"]))


@lru_cache(maxsize=1)
def _checker() -> Checker:
    return Checker(Path(__file__).with_name("Compatibility.java"), ARTIFACTS)
