"""The projections over the full log, in Spark.

Belongs here: sources of the log, rebuilds, analysis tables. Rules of the registry do not; they are in `domain`.
Begin with `log_schema.py`, then `read_model/rebuild.py` and `analysis/`.
"""
