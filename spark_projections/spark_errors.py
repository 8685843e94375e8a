"""What an error of Spark means: its cause in one line, and whether it comes from a source of the log."""

from __future__ import annotations

import re
from typing import Final

#: The last line of a Python traceback of this project.
_OWN_ERROR: Final = re.compile(r"^annals\.[\w.]+: (.+)$", re.MULTILINE)
#: An error in a stack trace of Java: the one that Py4J names in its second line, or a cause of it.
_JAVA_CAUSE: Final = re.compile(r"^(?:Caused by|(?<=\.\n)): (?:[\w.$]+: )?(.+)$", re.MULTILINE)
#: What Kafka's client and PostgreSQL's driver raise.
_SOURCE_ERROR: Final = re.compile(r"\borg\.(?:apache\.kafka\.common\.errors|postgresql)\.[\w.]+:")
#: PostgreSQL's driver about a server that is away: it refuses connections, ends them, or starts and stops.
_DATABASE_AWAY: Final = re.compile(
    r"PSQLException: (?:Connection to \S+ refused|The connection attempt failed|An I/O error occurred"
    r"|This connection has been closed|FATAL: (?:terminating connection|the database system is))"
)
#: PostgreSQL's driver about a database without the tables that are read first.
_NO_STORE: Final = re.compile(r'^ERROR: relation "(?:store|interaction)" does not exist')
#: What a filesystem says that is full or does not take data, in Java and Python.
_FILE_ERROR: Final = re.compile(
    r"No space left on device|Disk quota exceeded|Read-only file system|Permission denied|Operation not permitted"
    r"|Not a directory|Mkdirs failed to create|DELTA_CANNOT_CREATE_LOG_PATH|AccessDeniedException"
)
#: How the error of a registry that does not answer arrives from a task, as text.
_REGISTRY_AWAY: Final = "\nannals.spark_projections.sources.remote_log.UnreachableRegistry: "


def error_line(error: Exception) -> str:
    """The reason of an error.

    If Spark wraps an error of this project in two tracebacks, the message of the inner error.
    """
    messages = _OWN_ERROR.findall(str(error))
    causes = _JAVA_CAUSE.findall(str(error))
    line = str((messages or causes or [str(error).strip().partition("\n")[0]])[-1])
    return f"it has no tables of a registry ({line})" if _NO_STORE.match(line) else line


def is_source_error(error: Exception) -> bool:
    """Whether a broker or a database does not answer, or refuses the request."""
    return _SOURCE_ERROR.search(str(error)) is not None


def is_file_error(error: Exception) -> bool:
    """Whether a folder cannot be written: its disk is full, or it is not for this user."""
    return _FILE_ERROR.search(str(error)) is not None


def is_source_away(error: Exception) -> bool:
    """Whether a database or a registry that a task reads does not answer now."""
    return _REGISTRY_AWAY in str(error) or _DATABASE_AWAY.search(str(error)) is not None
