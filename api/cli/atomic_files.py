"""Files that have their name only when they are complete."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """A new file that replaces the one at the path when the block ends. If the block fails, nothing of it remains.

    Until then it has a name of its own in the same folder, so that several processes can write to one path: each
    replaces the file by a complete one. Raises: OSError.
    """
    part_path = path.with_name(f".annals-{token_hex(8)}.part")  # the name of the file may be as long as names can be
    try:
        with part_path.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        part_path.replace(path)
    except BaseException:
        part_path.unlink(missing_ok=True)
        raise
