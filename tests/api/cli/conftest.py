"""Each test is in an empty folder, without settings of the machine."""

from tests.support.console import annals, folder, logs

__all__ = ["annals", "folder", "logs"]
