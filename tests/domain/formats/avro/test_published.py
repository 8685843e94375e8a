"""Schemas of several releases of a real project: DataHub's, from its package on PyPI.

They are not in this repository: pip downloads two releases into the user's cache directory once.
"""

from __future__ import annotations

import json
import zipfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import fastavro
import pytest

from annals.domain.formats import avro
from tests.domain.formats.independent import check
from tests.support.downloads.wheels import wheel

_PACKAGE = "acryl-datahub"
_OLDER, _NEWER = "1.0.0", "1.7.0.17"
#: In 1.12 the default of a union may be of any branch; in earlier releases it has to be of the first branch.
_RELEASE = "Avro/1.11.0"


@lru_cache(maxsize=2)
def published(release: str) -> dict[str, str]:
    """Returns the texts of a release's schemas by name. Skips the test if pip cannot download the release."""
    with zipfile.ZipFile(wheel(_PACKAGE, release)) as archive:
        files = [file for file in archive.namelist() if file.endswith(".avsc")]
        return {Path(file).name: archive.read(file).decode() for file in files}


@pytest.mark.parametrize("release", [_OLDER, _NEWER])
def test_published_schemas_are_schemas(release: str) -> None:
    # SC-10: schemas of a real project are accepted; their canonical form is that of an Avro library.
    schemas = published(release)
    assert len(schemas) > 100
    for text in schemas.values():
        parsed = avro.parse(text.encode(), _RELEASE)
        assert not avro.incompatibilities(parsed, parsed)
        assert avro.canonical_form(parsed).decode() == fastavro.schema.to_parsing_canonical_form(json.loads(text))


def test_published_schemas_from_release_to_release() -> None:
    # SC-36, SC-39: another registry agrees on whether each schema is compatible with its newer release.
    older, newer = published(_OLDER), published(_NEWER)
    common = sorted(older.keys() & newer.keys())
    assert len(common) > 100
    verdicts = {name: _verdicts(older[name], newer[name]) for name in common}
    assert {name: ours for name, (ours, _) in verdicts.items()} == {name: them for name, (_, them) in verdicts.items()}
    assert len({ours for ours, _ in verdicts.values()}) > 1, "some have broken with the past, and most have not"


def test_published_schemas_evolve() -> None:
    # SC-36: a real schema with another optional field, with another required field, and with another name.
    for text in published(_NEWER).values():
        document = json.loads(text)
        if not isinstance(document, dict) or document["type"] != "record":
            continue
        before = avro.parse(text.encode(), _RELEASE)
        optional = _parsed(document, {"name": "annals_field", "type": ["null", "string"], "default": None})
        required = _parsed(document, {"name": "annals_field", "type": "string"})
        renamed = avro.parse(json.dumps(document | {"name": "AnnalsName"}).encode(), _RELEASE)
        assert not avro.incompatibilities(optional, before) and not avro.incompatibilities(before, optional)
        assert [one.rule for one in avro.incompatibilities(required, before)] == ["reader-field-missing-default"]
        assert not avro.incompatibilities(before, required)
        assert [one.rule for one in avro.incompatibilities(renamed, before)] == ["name-mismatch"]


def _parsed(document: dict[str, Any], field: dict[str, Any]) -> Any:
    changed = document | {"fields": [*document["fields"], field]}
    return avro.parse(json.dumps(changed).encode(), _RELEASE)


def _verdicts(older: str, newer: str) -> tuple[tuple[bool, bool], tuple[bool, bool]]:
    """Returns the verdicts backward and forward, of this format and of another registry."""
    before, after = (avro.parse(text.encode(), _RELEASE) for text in (older, newer))
    ours = (not avro.incompatibilities(after, before), not avro.incompatibilities(before, after))
    theirs = (check("avro", "backward", older, newer).compatible, check("avro", "forward", older, newer).compatible)
    return ours, theirs
