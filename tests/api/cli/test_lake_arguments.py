"""What `annals lake` refuses before it starts Spark, which takes long."""

from __future__ import annotations

from pathlib import Path
from typing import NoReturn

import pytest

from tests.support.console import Annals

HTTP = ("--from", "http://127.0.0.1:9")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("append", *HTTP, "--to", "lake", "--table", "nope"), 2, "--table nope is not one of log, "),
        (("append", *HTTP, "--to", "file"), 2, "--to file is a file; a lake needs a folder."),
        (("append", "--from", "ftp://x", "--to", "lake"), 2, "--from ftp://x is no source of a log: "),
        (("append", "--from", "none", "--to", "lake"), 3, "there are no segments at none."),
        (("verify", "--to", "file"), 2, "--to file is a file; a lake needs a folder."),
        (("verify", "--to", "none"), 3, "there are no tables of the format delta at none: there is no such folder."),
        (("optimize", "--to", "none"), 3, "there are no tables of the format delta at none: there is no such folder."),
        (("optimize", "--to", "none", "--table", "nope"), 2, "--table nope is not one of log, "),
    ],
)
def test_it_is_refused_without_spark(
    annals: Annals, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], code: int, says: str
) -> None:
    def start(*_: object, **__: object) -> NoReturn:
        pytest.fail("Spark is started")

    monkeypatch.setattr("annals.spark_projections.session.session", start)
    Path("file").touch()
    ended = annals("lake", *arguments)
    assert (ended.code, ended.out) == (code, "") and says in ended.err
    assert not Path("lake").exists()
