"""Files that have their name only when they are complete."""

from __future__ import annotations

from pathlib import Path

import pytest

from annals.api.cli.atomic_files import atomic_file


@pytest.mark.parametrize("name", ["out.json", "x" * 255, "é" * 127])
def test_a_file_has_its_name_when_it_is_complete(tmp_path: Path, name: str) -> None:
    """Also with the longest name that the filesystem takes."""
    path = tmp_path / name
    with atomic_file(path) as file:
        file.write(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new"
    with pytest.raises(RuntimeError), atomic_file(path) as file:
        file.write(b"newer")
        raise RuntimeError
    assert path.read_bytes() == b"new" and [*tmp_path.iterdir()] == [path]
