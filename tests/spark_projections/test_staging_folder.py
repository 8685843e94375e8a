"""Staging folders of rebuilds: those of killed processes are deleted, those in use are kept."""

from __future__ import annotations

from pathlib import Path

import pytest

from annals.spark_projections.read_model.staging_folder import staging_folder


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The system's temporary folder, with a blank in its name."""
    found = tmp_path / "system's own"
    found.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(found))
    return found


def folder(uri: str) -> Path:
    """Creates the folder of a URI, with a file in it."""
    found = Path(uri.removeprefix("file://").replace("%20", " ").replace("%27", "'"))
    found.mkdir()
    (found / "rows").touch()
    return found


def test_folders_in_use_are_kept(home: Path) -> None:
    # rebuilds of several stores run at once on one machine
    with staging_folder() as first:
        own = folder(first)
        with staging_folder() as second:
            folder(second)
            assert own.exists()
        assert [own.parent] == list(home.iterdir())
    assert not [*home.iterdir()]


def test_unused_folders_are_deleted(home: Path) -> None:
    # as a killed process, or an older program without locks, leaves them; others with similar names are not touched
    for left in ("annals-rebuild-a/stage/rows", "annals-rebuild-b/stage"):
        (home / left).mkdir(parents=True)
    (home / "annals-rebuild-a" / "lock").touch()
    (home / "annals-rebuild-mine").mkdir()
    (home / "annals-rebuild-mine" / "notes").touch()
    (home / "annals-rebuild-linked").symlink_to(home / "annals-rebuild-mine")
    (home / "annals-rebuild-file").touch()
    with staging_folder():
        assert len([*home.iterdir()]) == 4
    assert {each.name for each in home.iterdir()} == {f"annals-rebuild-{kind}" for kind in ("mine", "linked", "file")}
