"""How Spark finds the format `annals`: it imports each module at the top whose name begins with `pyspark_`.

Every installation has this file a second time, as the module `pyspark_annals`; see `pyproject.toml`. Spark registers
the `DefaultSource` of such a module under the name that the class returns.
"""

from annals.spark_projections.sources.annals import AnnalsSource as DefaultSource

__all__ = ["DefaultSource"]
