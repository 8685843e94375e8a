"""Names of schema formats in Schema Registry 0.2: the tables in formats.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from domain.compat.formats import mapped, of_media_type, same, shown, spelled

TABLE = yaml.load(Path(__file__).with_name("formats.yaml").read_text(), yaml.CSafeLoader)


def rows(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("row", TABLE[name], ids=[row["rule"] for row in TABLE[name]])


@rows("names")
def test_name(row: dict[str, Any]) -> None:
    # LEG-701, LEG-702
    assert (mapped(row["name"]), spelled(row["mapped"])) == (row["mapped"], row["back"])
    assert same(spelled(row["mapped"]), row["name"])
    assert shown(row["mapped"], None, "other", row["name"]) == row["name"]
    assert shown(row["mapped"], "other") == row["back"]


@rows("pairs")
def test_pair(row: dict[str, Any]) -> None:
    # LEG-702
    assert same(row["one"], row["other"]) is same(row["other"], row["one"]) is row["same"]


@rows("mediatypes")
def test_media_type(row: dict[str, Any]) -> None:
    # LEG-504
    if row["format"] is False:
        with pytest.raises(ValueError, match="two formats"):
            of_media_type(row["type"])
    else:
        assert of_media_type(row["type"]) == row["format"]
