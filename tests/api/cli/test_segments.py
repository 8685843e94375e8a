"""`annals segments`: exit codes 0 done, 1 refused, 2 usage, 3 damaged, and one line that names the error."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from annals.projections.segments.folder import open_folder
from annals.projections.segments.manifest import SegmentRange
from tests.support.console import Annals
from tests.support.registries.recorded import Registry
from tests.support.segment_logs import log_rows, record_interactions


@pytest.fixture
def store(sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Registry:
    """A store with twelve interactions in the current folder, without the settings of the machine."""
    for name in [name for name in os.environ if name.startswith("ANNALS_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ANNALS_DATABASE", sqlite_url)
    with Registry(sqlite_url) as registry:
        record_interactions(registry, 12)
    return registry


@pytest.mark.parametrize("place", ["out", "{path}/out", "file://{path}/out"])
def test_a_folder_is_named_by_path_or_uri(store: Registry, annals: Annals, tmp_path: Path, place: str) -> None:
    uri = place.format(path=tmp_path)
    last = len(log_rows(store.store.engine))
    assert annals("segments", "write", "--folder", uri) == (
        0,
        f"1 segments with {last} events; they end at position {last}\n",
        "",
    )
    assert (
        annals("segments", "write", "--folder", uri).out == f"0 segments with 0 events; they end at position {last}\n"
    )
    assert [range.last for range in open_folder(str(tmp_path / "out")).ranges()] == [last]


def test_the_folder_may_be_a_setting(
    store: Registry, annals: Annals, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANNALS_SEGMENTS", str(tmp_path / "set"))
    assert annals("segments", "write", "--events", "5", "--full").code == 0
    assert annals("segments", "verify").code == 0
    assert len(list((tmp_path / "set" / "manifest").iterdir())) == len(annals("segments", "list").out.splitlines())


def test_list_prints_the_manifest(store: Registry, annals: Annals, tmp_path: Path) -> None:
    annals("segments", "write", "--folder", "out", "--events", "5")
    entries = [json.loads(path.read_text()) for path in sorted((tmp_path / "out" / "manifest").iterdir())]
    printed = annals("segments", "list", "--folder", "out", "--json").out.splitlines()
    assert [json.loads(line) for line in printed] == entries
    rows = [line.split("\t") for line in annals("segments", "list", "--folder", "out").out.splitlines()]
    for row, one in zip(rows, entries, strict=True):
        packed = one["documents"] or {"bytes": 0, "rows": 0}
        counts = [one[name] for name in ("first", "last", "events", "interactions")]
        assert row == [*map(str, (*counts, one["log"]["bytes"] + packed["bytes"], packed["rows"])), one["log"]["path"]]


def test_verify_names_the_position(store: Registry, annals: Annals, tmp_path: Path) -> None:
    annals("segments", "write", "--folder", "out", "--events", "5")
    chain = log_rows(store.store.engine)[-1].chain.hex()
    last = len(log_rows(store.store.engine))
    ended = annals("segments", "verify", "--folder", "out", "--database", store.url)
    assert ended == (0, f"{last} events, no findings. chain {chain}\n", "")
    second = sorted((tmp_path / "out" / "log").iterdir())[1]
    first = int(second.name[:19])
    second.unlink()
    ended = annals("segments", "verify", "--folder", "out")
    assert ended.code == 3
    assert [line.partition(":")[0] for line in ended.out.splitlines()] == [f"position {first}"] * 2
    assert ended.err == (
        "annals: 2 findings; remove what is damaged, and its entries in manifest/; annals segments write writes them "
        "again. In an archive, restore them from a backup instead: the database no longer has "
        "them.\n"
    )


def test_a_folder_of_another_registry_is_refused(store: Registry, annals: Annals, tmp_path: Path) -> None:
    annals("segments", "write", "--folder", "out")
    url = f"sqlite:///{tmp_path / 'other.db'}"
    with Registry(url) as other:
        record_interactions(other, 12)
    ended = annals("segments", "write", "--folder", "out", "--database", url)
    last = len(log_rows(store.store.engine))
    assert ended == (
        1,
        "",
        f"annals: out has another log than this store: they differ between the positions 1 and {last}; "
        "each log needs a folder of its own.\n",
    )
    verified = annals("segments", "verify", "--folder", "out", "--database", url)
    # nothing is damaged, so the advice must not be to remove anything
    assert (verified.code, verified.err) == (3, "annals: 1 finding; each log needs a folder of its own.\n")


@pytest.mark.parametrize("damage", ["truncated", "of something else", "missing"])
def test_a_damaged_file_of_documents_is_named(store: Registry, annals: Annals, tmp_path: Path, damage: str) -> None:
    annals("segments", "write", "--folder", "out")
    with Registry(store.url) as registry:
        record_interactions(registry, 4, start=12)
    [file] = (tmp_path / "out" / "documents").iterdir()
    match damage:
        case "truncated":
            file.write_bytes(file.read_bytes()[:-20])
        case "missing":
            file.unlink()
        case _:
            [log] = (tmp_path / "out" / "log").iterdir()
            file.write_bytes(log.read_bytes())
    ended = annals("segments", "write", "--folder", "out")
    assert (ended.code, ended.out, ended.err.count("\n")) == (3, "", 1), ended.err
    assert ended.err.startswith(f"annals: out: a segment is damaged: documents/{file.name}")
    assert ended.err.endswith("; annals segments verify says which.\n")
    assert annals("segments", "verify", "--folder", "out").code == 3


#: The arguments, the exit code, and the beginning of the line on stderr.
MISUSES = {
    "no filesystem": (["write", "--folder", "gopher://host/out"], 2, "annals: this cannot be a folder of segments: "),
    "no folder": (["write", "--folder", "annals.db"], 2, "annals: annals.db cannot be read or written: "),
    "no store": (["write", "--folder", "out", "--database", "sqlite:///none.db"], 3, "annals: there is no store at "),
    "nothing to verify": (["verify", "--folder", "none"], 3, "annals: there are no segments at none.\n"),
    "nothing to list": (["list", "--folder", "none"], 3, "annals: there are no segments at none.\n"),
    "a gap": (["list", "--folder", "gap"], 3, "annals: gap: position 1: the next segment is missing, while there are "),
    "a newer form": (["list", "--folder", "newer"], 3, "annals: newer: manifest/"),
}


@pytest.mark.parametrize(("arguments", "code", "said"), MISUSES.values(), ids=MISUSES)
def test_what_cannot_be_ends_with_one_line(
    store: Registry, annals: Annals, tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    for name, first in (("newer", 1), ("gap", 5)):
        (manifest := tmp_path / name / "manifest").mkdir(parents=True)
        (manifest / f"{SegmentRange(first, 9)}.json").write_text('{"schemaversion": 2}')
    ended = annals("segments", *arguments)
    assert (ended.code, ended.out) == (code, "")
    assert ended.err.startswith(said)
    assert ended.err.count("\n") == 1


def test_without_pyarrow_the_library_is_named(store: Registry, annals: Annals, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("pyarrow", "annals.projections.segments"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)  # Python marks a module that cannot be imported so
    for verb in ("write", "list", "verify"):
        ended = annals("segments", verb, "--folder", "out")
        assert (ended.code, ended.out) == (2, "")
        command = f"{shlex.quote(sys.executable)} -m pip install pyarrow"
        assert ended.err.endswith(f"segments and archives need pyarrow; install it with: {command}\n")
