"""Annals, an event-sourced registry for schemas, messages and endpoints.

The import name of the project. The parts themselves are folders at the top of the source tree; the links here make them
`annals.domain`, `annals.commands`, `annals.projections`, `annals.api` and `annals.spark_projections`.
"""

from typing import Final

#: The one place where the version is stated.
__version__: Final = "0.1.0"
