"""Each test is in an empty folder, without settings of the machine."""

from tests.support.console import annals, folder

__all__ = ["annals", "folder"]
