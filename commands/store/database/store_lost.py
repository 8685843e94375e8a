"""The error of a process that cannot go on with its database, because it is no longer the one that it has read."""

from __future__ import annotations

import sqlite3


class StoreLost(sqlite3.OperationalError):
    """The message says what has happened and what to do.

    An error of a driver, so that what handles outages handles this one as well.
    """
