"""The filesystem of a path or a URI. Needs pyarrow, from the extra `annals[segments]`."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from pyarrow import fs


def filesystem_at(uri: str) -> tuple[fs.FileSystem, str]:
    """The filesystem of a path or a URI, and the path in it.

    Raises: ValueError for a URI without a filesystem; OSError when that does not respond.
    """
    scheme = urlsplit(uri).scheme
    if len(scheme) < 2:  # one letter is a drive
        return fs.LocalFileSystem(), Path(uri).absolute().as_posix()
    filesystem, root = fs.FileSystem.from_uri(f"s3{uri[3:]}" if scheme == "s3a" else uri)
    return filesystem, str(root)
