"""`annals log hash`: prints the hash of a registry, and finds the first difference from a served registry."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from tests.api.cli.test_console import samples
from tests.api.cli.test_log_verbs import AGAIN, FILE, GROUP, VERSION, database, rows
from tests.support.console import Annals
from tests.support.registries.other_registry import json_answer, other_registry
from tests.support.serving import serving

__all__ = ["AGAIN", "database", "samples"]

OTHER = b"\7" * 32


def test_a_hash_is_that_of_a_moment(annals: Annals, database: str) -> None:
    # Proof: the hash of / is the state hash. FLAG-80: --asof takes a position, a correlation id or a time
    ended = annals("log", "verify", "--database", database).out.split()
    position, state = ended[0], ended[-1]
    whole = rows(annals("log", "hash", "--database", database).out)
    assert whole == [[state, "6", position, "/"]]
    below = rows(annals("log", "hash", "dirs/d1/", "--database", database).out)
    assert [row[1:] for row in below] == [["3", position, GROUP]]
    created, updated = rows(annals("log", "history", GROUP, "--database", database).out)
    moments = (str(int(updated[0]) - 1), created[6], created[1])
    [then] = {annals("log", "hash", GROUP, "--asof", at, "--database", database).out for at in moments}
    assert rows(then)[0][1:] == ["3", moments[0], GROUP] and rows(then)[0][0] != below[0][0]
    refused = annals("log", "hash", "--asof", "99999", "--database", database)
    assert (refused.code, refused.out) == (1, "")
    assert '"asof=99999"' in refused.err


@pytest.fixture
def copies(annals: Annals, samples: list[Path], folder: Path) -> Iterator[tuple[str, Path, str]]:
    """The URL of a store, a copy of its file, and the URL of a server of the copy, which requires the token."""
    here, there = folder / "here.db", folder / "there.db"
    for file in samples:
        assert annals("import", file, "--database", f"sqlite:///{here}").code == 0
    shutil.copy(here, there)
    tokens = json.dumps({"secret": {"name": "rita", "role": "reader"}})
    with serving(f"sqlite:///{there}", folder, ANNALS_TOKENS=tokens) as served:
        yield f"sqlite:///{here}", there, served.url


DAMAGE = [
    ("different", VERSION, "UPDATE head SET hash = ? WHERE xid = ?", (OTHER, VERSION)),
    ("missing there", FILE, "UPDATE head SET live = 0 WHERE xid = ?", (FILE,)),
    (
        "missing here",
        "/dirs/d0",
        "INSERT INTO head VALUES ('!dirs!d0', 1, 1, '/dirs/d0', 'dirs', 1, ?, NULL)",
        (OTHER,),
    ),
]


def test_the_first_difference_is_named(annals: Annals, copies: tuple[str, Path, str]) -> None:
    here, file, url = copies
    compare = ("log", "hash", "--against", url, "--token", "secret", "--database", here)
    same = annals(*compare)
    assert (same.code, same.err, len(rows(same.out))) == (0, "", 1)
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        for change, xid, statement, values in DAMAGE:
            connection.execute(statement, values)
            found = annals(*compare)
            difference = rows(found.out)[1]
            assert (found.code, found.err, difference[:2]) == (1, f"annals: {url} differs.\n", [change, xid])
            assert {"different": OTHER.hex(), "missing there": "", "missing here": OTHER.hex()}[change] == difference[3]
            assert (difference[2] == "") == (change == "missing here")
    assert annals(*compare[:2], "/model", *compare[2:]).code == 0


@pytest.mark.parametrize("path", ["/dris", "/dirs/d1/schemas", "/dirs/d1/files/f1/version", "/dris/d1"])
def test_a_path_of_no_type_is_refused(annals: Annals, database: str, path: str) -> None:
    # a mistyped path would be a part without entities, which is equal everywhere
    for against in ((), ("--against", "http://127.0.0.1:1")):
        ended = annals("log", "hash", path, *against, "--database", database)
        assert (ended.code, ended.out) == (1, "") and ended.err.endswith(" (not_found)\n"), ended


@pytest.mark.parametrize("path", ["/", "/model", "/dirs", "/dirs/d9", "/dirs/d9/files/f/versions/1", "/dirs/d9/files"])
def test_a_path_of_a_type_needs_no_entity(annals: Annals, database: str, path: str) -> None:
    assert annals("log", "hash", path, "--database", database).code == 0


def test_an_unreachable_registry_is_reported(annals: Annals, copies: tuple[str, Path, str]) -> None:
    here, _, url = copies
    unusable = annals("log", "hash", "--against", url, "--token", "tökén", "--database", here)
    assert (unusable.code, unusable.err) == (2, "annals: the token has characters that a header cannot have.\n")
    nowhere = annals("log", "hash", "--against", "nowhere", "--database", here)
    assert (nowhere.code, nowhere.out, "begins with http" in nowhere.err) == (2, "", True)
    hint = "Give a token with --token or ANNALS_TOKEN, or sign in with annals auth login."
    for at, token, said in (
        (url, (), hint),
        (f"{url}/nothing", (), "answers 401"),
        (f"{url}/nothing", ("--token", "secret"), "answers 404"),
        ("http://127.0.0.1:1", (), "does not answer"),
    ):
        # code 1 says that both differ, so it is not the code of what could not be compared
        found = annals("log", "hash", "--against", at, *token, "--database", here)
        assert (found.code, len(rows(found.out)), said in found.err) == (3, 1, True), found
        assert found.err.count("\n") == 1


_EMPTY: Final = {"count": 0, "hash": "00" * 32}
#: Members of the answer of another registry.
WRONG_ANSWERS: Final[dict[str, Any]] = {
    "a list": [],
    "no parts": {**_EMPTY, "asof": {"position": 1}},
    "no list of parts": {**_EMPTY, "asof": {"position": 1}, "parts": 5},
    "a part that is none": {**_EMPTY, "asof": {"position": 1}, "parts": [5]},
    "a part without its ends": {**_EMPTY, "asof": {"position": 1}, "parts": [{"count": 1, "hash": ""}]},
    "too few parts": {**_EMPTY, "asof": {"position": 1}, "parts": []},
    "no position": {**_EMPTY, "asof": {}, "parts": [_EMPTY]},
}


@pytest.mark.parametrize("members", WRONG_ANSWERS.values(), ids=WRONG_ANSWERS)
def test_answers_that_are_not_hashes_are_reported(
    annals: Annals, samples: list[Path], folder: Path, members: Any
) -> None:
    here = f"sqlite:///{folder / 'here.db'}"
    assert annals("import", samples[0], "--database", here).code == 0
    with other_registry({"GET /-/hash/dirs": json_answer(members)}) as other:
        found = annals("log", "hash", "/dirs", "--against", other.url, "--database", here)
    assert (found.code, found.err.count("\n")) == (3, 1), found
    assert "answers 200: this is not the answer of a registry with hashes" in found.err
