"""Each test runs in an empty folder, without the settings of the machine."""

from tests.support.console import annals, folder, logs

__all__ = ["annals", "folder", "logs"]
