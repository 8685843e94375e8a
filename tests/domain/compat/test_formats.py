"""Names of schema formats in Schema Registry 0.2: the tables in formats.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from annals.domain.compat.formats import (
    displayed_format,
    format_parameter,
    is_same_format,
    legacy_format,
    registry_format,
)

TABLE = yaml.load(Path(__file__).with_name("formats.yaml").read_text(), yaml.CSafeLoader)


def rows(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", TABLE[name], ids=[row["rule"] for row in TABLE[name]])


@rows("names")
def test_name(row: dict[str, Any]) -> None:
    # LEG-701, LEG-702
    assert (registry_format(row["name"]), legacy_format(row["mapped"])) == (row["mapped"], row["back"])
    assert is_same_format(legacy_format(row["mapped"]), row["name"])
    assert displayed_format(row["mapped"], None, "other", row["name"]) == row["name"]
    assert displayed_format(row["mapped"], "other") == row["back"]


@rows("pairs")
def test_pair(row: dict[str, Any]) -> None:
    # LEG-702
    assert is_same_format(row["one"], row["other"]) is is_same_format(row["other"], row["one"]) is row["same"]


@rows("mediatypes")
def test_media_type(row: dict[str, Any]) -> None:
    # LEG-504
    if row["format"] is False:
        with pytest.raises(ValueError, match="two formats"):
            format_parameter(row["type"])
    else:
        assert format_parameter(row["type"]) == row["format"]
