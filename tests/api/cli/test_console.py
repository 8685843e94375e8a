"""What verbs of the console do to a store, and their exit codes: 0 done, 1 refused, 2 usage, 3 store."""

from __future__ import annotations

import json
import os
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest

from annals.commands.store.compression.state_compression import compress_state, decompress_state
from tests.support.console import Annals
from tests.support.serving import serving

MODEL = {"groups": {"dirs": {"singular": "dir", "resources": {"files": {"singular": "file"}}}}}
DATA = {"dirs": {"d1": {"name": "one", "files": {"f1": {"versionid": "v1", "file": {"a": [1, 2.50]}}}}}}
REGISTRY = {"name": "Sample", "labels": {"stage": "test"}, **DATA}


def write_file(folder: Path, name: str, content: Any) -> Path:
    path = folder / name
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


@pytest.fixture
def samples(folder: Path) -> list[Path]:
    return [write_file(folder, "model.json", MODEL), write_file(folder, "data.json", DATA)]


def rename_in_log(file: str) -> None:
    """Changes the state of an event in the database, bypassing the registry; the changed state is still readable."""
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        [(stored,)] = connection.execute("SELECT state FROM log WHERE stream = '/dirs/d1'").fetchall()
        state = decompress_state(stored)
        assert b'"one"' in state
        changed = compress_state(state.replace(b'"one"', b'"two"'))
        connection.execute("UPDATE log SET state = ? WHERE stream = '/dirs/d1'", (changed,))


def exported(annals: Annals, database: str) -> Any:
    return json.loads(annals("export", "--database", database).out)


def test_models_and_documents_are_imported(annals: Annals, samples: list[Path], store_url: str) -> None:
    # HTTP-23: a map of Group collections does not change the attributes of the registry.
    ended = annals("import", *samples, "--database", store_url)
    assert (ended.code, ended.err) == (0, "")
    found = exported(annals, store_url)
    assert found["dirs"]["d1"]["files"]["f1"]["versions"].keys() == {"v1"}
    assert "name" not in found


def test_an_import_writes_registry_attributes_and_groups(annals: Annals, folder: Path, sqlite_url: str) -> None:
    files = [write_file(folder, "model.json", MODEL), write_file(folder, "registry.json", REGISTRY)]
    assert annals("import", *files, "--database", sqlite_url).code == 0
    found = exported(annals, sqlite_url)
    assert (found["name"], found["labels"]) == ("Sample", {"stage": "test"})
    assert found["dirs"]["d1"]["name"] == "one"


def test_the_console_can_change_an_immutable_registry(annals: Annals, folder: Path, store_url: str) -> None:
    # CAP-13: the console can change the store even if the capabilities make everything immutable
    closed: Any = {name: {"mutable": False} for name in ("capabilities", "entities", "export", "model", "modelsource")}
    for available in (closed, {**closed, "capabilities": {"mutable": True}}):
        document = write_file(folder, "capabilities.json", {"capabilities": {"available": available}})
        ended = annals("import", "--as", "registry", document, "--database", store_url)
        assert (ended.code, ended.err) == (0, "")
        assert exported(annals, store_url)["capabilities"]["available"] == available


def test_an_import_keeps_server_assigned_ids(annals: Annals, folder: Path) -> None:
    # ENT-77: an import accepts the versionids that the server of the exported registry assigned, and its server goes
    # on from them
    files = {"singular": "file", "hasdocument": False, "setversionid": False}
    model = {"groups": {"dirs": {"singular": "dir", "resources": {"files": files}}}}
    given: Any = {"dirs": {"d": {"files": {"f": {"versions": {"2": {}, "1": {}}}, "g": {"versions": {"7": {}}}}}}}
    ways = [write_file(folder, "model.json", model), write_file(folder, "data.json", given)]
    annals("import", *ways, "--database", "sqlite:///one.db")
    annals("export", "--output", "all.json", "--database", "sqlite:///one.db")
    ended = annals("import", "all.json", "--database", "sqlite:///two.db")
    assert (ended.code, ended.err) == (0, "")
    assert exported(annals, "sqlite:///two.db")["dirs"]["d"]["files"]["f"]["versions"].keys() == {"1", "2"}
    with serving("sqlite:///two.db", folder) as (base, _):
        refused = httpx.put(f"{base}/dirs/d/files/f/versions/9", json={})
        assert refused.json()["type"].endswith("#versionid_not_allowed")
        assert httpx.post(f"{base}/dirs/d/files/f", json={}).json()["versionid"] == "3"
        assert httpx.post(f"{base}/dirs/d/files/g", json={}).json()["versionid"] == "1"


def test_an_import_gives_no_content_type_to_documents_without_one(annals: Annals, folder: Path) -> None:
    # ENT-123: the type of a request with a document in base64 says nothing about a document that is copied
    schemas = {"bytes": {"format": "x", "schemabase64": "AAEC"}, "json": {"format": "x", "schema": {"a": 1}}}
    write_file(folder, "all.json", {"schemagroups": {"g": {"schemas": schemas}}})
    for number in range(2):
        assert annals("import", "all.json", "--database", f"sqlite:///{number}.db").code == 0
        annals("export", "--output", "all.json", "--database", f"sqlite:///{number}.db")
    found = json.loads((folder / "all.json").read_text())["schemagroups"]["g"]["schemas"]
    types = {name: [each.get("contenttype") for each in found[name]["versions"].values()] for name in found}
    assert types == {"bytes": [None], "json": ["application/json"]}


def test_an_export_of_what_was_stated_has_no_defaults(annals: Annals, folder: Path) -> None:
    # MS-16: only the stated attributes are exported, with the same bytes as GET /export?stated
    message = {"envelope": "CloudEvents/1.0", "envelopemetadata": {"type": {"value": "t"}}}
    data = write_file(folder, "data.json", {"messagegroups": {"g": {"messages": {"m": message}}}})
    annals("import", data)
    annals("export", "--stated", "--output", "stated.json")
    shown = json.loads((folder / "stated.json").read_text())["messagegroups"]["g"]["messages"]["m"]["versions"]["1"]
    assert shown["envelopemetadata"] == message["envelopemetadata"]
    assert "xid" not in shown
    with serving("sqlite:///annals.db", folder) as served:
        answer = httpx.get(f"{served.url}/export?stated").text
        ended = annals("export", "--stated", "--public-url", served.url)
    assert (ended.code, ended.out) == (0, answer)


def test_an_imported_model_leaves_other_types_alone(annals: Annals, samples: list[Path], sqlite_url: str) -> None:
    # ENT-151: a Group type that the imported model omits stays, because its deletion would delete its entities.
    annals("import", *samples, "--database", sqlite_url)
    groups = exported(annals, sqlite_url)["modelsource"]["groups"]
    assert {"dirs", "endpoints", "messagegroups", "schemagroups"} <= groups.keys()


def test_the_same_model_again_is_no_change(annals: Annals, samples: list[Path], sqlite_url: str) -> None:
    annals("import", samples[0], "--database", sqlite_url)
    assert "nothing new" in annals("import", samples[0], "--database", sqlite_url).out


def test_a_model_may_include_its_neighbours(annals: Annals, folder: Path, sqlite_url: str) -> None:
    # MOD-72: $include names a file in the folder of the file that contains it.
    write_file(folder, "dirs.json", MODEL)
    including = write_file(folder, "model.json", {"groups": {"$include": "dirs.json#/groups"}})
    assert annals("import", including, "--database", sqlite_url).code == 0
    assert "dirs" in exported(annals, sqlite_url)["modelsource"]["groups"]


def test_an_export_goes_into_an_empty_registry(annals: Annals, samples: list[Path], folder: Path) -> None:
    # Invariant 37: an exported registry is imported unchanged, except for attributes that each server sets itself.
    annals("import", *samples, "--database", "sqlite:///one.db")
    annals("export", "--output", "all.json", "--database", "sqlite:///one.db")
    ended = annals("import", "all.json", "--database", "sqlite:///two.db")
    assert (ended.code, ended.err) == (0, "")
    one, two = exported(annals, "sqlite:///one.db"), exported(annals, "sqlite:///two.db")
    assert one["dirs"] == two["dirs"]
    assert one["modelsource"] == two["modelsource"]


def test_an_export_takes_the_place_of_files_only(annals: Annals, samples: list[Path], folder: Path) -> None:
    # An export writes into a pipe, and through a symbolic link, instead of replacing them.
    annals("import", *samples, "--database", "sqlite:///one.db")
    os.mkfifo("pipe")
    Path("link.json").symlink_to("real.json")
    with ThreadPoolExecutor(1) as pool:
        read = pool.submit(Path("pipe").read_bytes)
        assert annals("export", "--output", "pipe", "--database", "sqlite:///one.db").code == 0
    assert annals("export", "--output", "link.json", "--database", "sqlite:///one.db").code == 0
    assert read.result() == Path("real.json").read_bytes()
    assert (Path("pipe").is_fifo(), Path("link.json").is_symlink()) == (True, True)


def test_an_export_that_cannot_be_written_is_one_line(annals: Annals, samples: list[Path], folder: Path) -> None:
    annals("import", *samples, "--database", "sqlite:///one.db")
    ended = annals("export", "--output", "missing/all.json", "--database", "sqlite:///one.db")
    assert (ended.code, ended.err.splitlines()[0].startswith("annals: cannot write missing/all.json: ")) == (2, True)


def test_export_is_the_bytes_of_get_export(annals: Annals, samples: list[Path], folder: Path, store_url: str) -> None:
    # FLAG-36: /export is the whole registry as one document.
    annals("import", *samples, "--database", store_url)
    with serving(store_url, folder) as served:
        answer = httpx.get(f"{served.url}/export").text
        ended = annals("export", "--database", store_url, "--public-url", served.url)
    assert (ended.code, ended.out) == (0, answer)


def test_data_survives_a_restart(folder: Path, sqlite_url: str) -> None:
    with serving(sqlite_url, folder) as served:
        httpx.put(f"{served.url}/schemagroups/g", json={"name": "kept"}).raise_for_status()
    with serving(sqlite_url, folder) as served:
        assert httpx.get(f"{served.url}/schemagroups/g").json()["name"] == "kept"


def test_tail_prints_positions_xids_kinds_and_correlation_ids(annals: Annals, samples: list[Path]) -> None:
    # EV-27: all events of one request carry one correlation id.
    annals("import", *samples)
    lines = [line.split("\t") for line in annals("log", "tail", "-n", "5").out.splitlines()]
    created = ["/dirs/d1", "/dirs/d1/files/f1", "/dirs/d1/files/f1/versions/v1"]
    assert [line[2:4] for line in lines[-3:]] == [["EntityCreated", xid] for xid in created]
    assert len({line[5] for line in lines[-3:]}) == 1
    positions = [int(line[0]) for line in lines]
    assert positions == list(range(positions[0], positions[0] + 5))


def test_show_prints_the_state_after_an_event(annals: Annals, samples: list[Path]) -> None:
    annals("import", *samples)
    position = annals("log", "tail", "-n", "1").out.split("\t")[0]
    shown = json.loads(annals("log", "show", position).out)
    assert (shown["xid"], shown["attributes"]["versionid"]) == ("/dirs/d1/files/f1/versions/v1", "v1")
    assert annals("log", "show", "100000").code == 1


def test_verify_is_silent_about_a_whole_log_and_exact_about_a_changed_one(annals: Annals, samples: list[Path]) -> None:
    annals("import", *samples)
    whole = annals("log", "verify")
    assert (whole.code, whole.err) == (0, "")
    rename_in_log("annals.db")
    changed = annals("log", "verify")
    assert changed.code == 3
    assert "position " in changed.out
    assert "backup" in changed.err


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE log SET state = x'7b7d'",
        "UPDATE log SET state = x'00'",
        "UPDATE log SET topic = 'Other:1'",
        "UPDATE log SET revision = 'x'",
        "UPDATE interaction SET time = 'x'",
        "UPDATE interaction SET state = 'x'",
    ],
)
def test_damage_is_one_line_and_code_3(annals: Annals, samples: list[Path], damage: str) -> None:
    # verify names the position of any damage, and a rebuild fails with one line
    annals("import", *samples)
    with sqlite3.connect("annals.db") as connection:
        place = "last" if "interaction" in damage else "position"
        connection.execute(f"{damage} WHERE {place} = (SELECT max({place}) FROM {damage.split()[1]})")
    connection.close()
    found = annals("log", "verify")
    assert (found.code, found.err.count("\n")) == (3, 1)
    assert "position " in found.out
    refused = annals("rebuild")
    assert (refused.code, refused.err.count("\n")) == (3, 1)


def test_rebuild_restores_a_changed_read_model(annals: Annals, samples: list[Path]) -> None:
    # verify finds a changed row of the current or an earlier state, and names the verb that repairs it
    annals("import", *samples)
    for table in ("entity", "entity_history"):
        with sqlite3.connect("annals.db") as connection:
            connection.execute(f"UPDATE {table} SET epoch = epoch + 1 WHERE xid = '/'")
        connection.close()
        changed = annals("log", "verify")
        assert changed.code == 3
        assert "position 1: " in changed.out or table == "entity"
        assert "annals rebuild" in changed.err
        assert annals("rebuild").code == 0
        assert annals("log", "verify").code == 0


def test_a_rebuild_leaves_the_same_registry(annals: Annals, samples: list[Path], store_url: str) -> None:
    annals("import", *samples, "--database", store_url)
    before = exported(annals, store_url)
    assert annals("rebuild", "--database", store_url).code == 0
    assert exported(annals, store_url) == before
    assert annals("log", "verify", "--database", store_url).code == 0


REFUSED = {
    "no JSON": '{"dirs": ',
    "no object": [],
    "a member twice": '{"name": "a", "name": "b"}',
    "an unknown attribute": {"nonsense": 1},
    "a wrong type": {"name": 5},
    "a broken model": {"groups": {"dirs": {"singular": "dirs"}}},
    "an include that leads nowhere": {"groups": {"$include": "missing.json"}},
}


@pytest.mark.parametrize("content", REFUSED.values(), ids=REFUSED.keys())
def test_refused_input_is_one_line_and_code_1(annals: Annals, folder: Path, content: Any) -> None:
    ended = annals("import", write_file(folder, "bad.json", content))
    assert (ended.code, ended.out) == (1, "")
    assert ended.err.startswith("annals: bad.json: ") or ended.err.startswith(f"annals: {folder}/bad.json: ")
    assert ended.err.count("\n") == 1


def test_the_line_names_the_attribute_and_the_rule(annals: Annals, folder: Path) -> None:
    # ERR-1: an error names its type from the specification.
    ended = annals("import", write_file(folder, "bad.json", {"schemagroups": {"g": {"epoch": 1, "name": 5}}}))
    for part in ("/schemagroups/g", "name", "(invalid_attribute)"):
        assert part in ended.err


def test_a_refused_file_leaves_nothing_behind(annals: Annals, samples: list[Path], folder: Path) -> None:
    # ENT-4: one failure undoes the whole request.
    annals("import", *samples)
    end = annals("log", "tail", "-n", "1").out
    bad = write_file(folder, "bad.json", {"dirs": {"d2": {}, "d3": {"name": 5}}})
    assert annals("import", bad).code == 1
    assert annals("log", "tail", "-n", "1").out == end


@pytest.mark.parametrize(
    "arguments",
    [("import", "missing.json"), ("import",), ("nonsense",), ("serve", "--port", "x"), ("serve", "--port", "70000")],
)
def test_wrong_usage_is_code_2(annals: Annals, arguments: tuple[str, ...]) -> None:
    assert annals(*arguments).code == 2


@pytest.mark.parametrize("verb", [("log", "tail"), ("log", "verify"), ("export",), ("rebuild",)])
@pytest.mark.parametrize("url", ["sqlite:///missing.db", "postgresql://me:geheim@127.0.0.1:1/none"])
def test_a_store_out_of_reach_is_code_3(annals: Annals, folder: Path, verb: tuple[str, ...], url: str) -> None:
    ended = annals(*verb, "--database", url)
    assert ended.code == 3
    assert "geheim" not in ended.err
    assert ended.err.count("\n") == 1
    assert not (folder / "missing.db").exists()


@pytest.mark.parametrize("verb", [("import", "m.json"), ("serve", "--port", "0"), ("log", "tail"), ("rebuild",)])
def test_a_missing_folder_is_named(annals: Annals, folder: Path, verb: tuple[str, ...]) -> None:
    write_file(folder, "m.json", {})
    relative = annals(*verb, "--database", "sqlite:///var/lib/annals.db")
    assert (relative.code, relative.err) == (
        3,
        f"annals: there is no folder {folder / 'var/lib'} for the store var/lib/annals.db; create it, or correct "
        "ANNALS_DATABASE or --database. An absolute path has four slashes, as in sqlite:////var/lib/annals.db.\n",
    )
    absolute = annals(*verb, "--database", f"sqlite:///{folder}/none/annals.db")
    assert (absolute.code, absolute.err) == (
        3,
        f"annals: there is no folder {folder}/none for the store {folder}/none/annals.db; create it, or correct "
        "ANNALS_DATABASE or --database.\n",
    )


def test_help_names_the_exit_codes(annals: Annals) -> None:
    for verb in ((), ("serve",), ("import",), ("export",), ("log",), ("rebuild",), ("config",)):
        ended = annals(*verb, "--help")
        assert ended.code == 0
        assert "Exit codes" in ended.out
