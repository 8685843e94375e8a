"""How Spark finds the format `annals`: it imports each module at the top whose name begins with `pyspark_`.

So the wheel has this file at the top, and an editable installation has a copy there; see `pyproject.toml`. Spark
registers the `DefaultSource` of such a module under the name that the class returns.
"""

from annals.spark_projections.sources.annals import AnnalsSource as DefaultSource

__all__ = ["DefaultSource"]
