"""Sources of the log. Each returns rows of `log_schema.LOG_SCHEMA`: whole interactions up to one position.

Belongs here: one file per source. Computations on the log do not. Begin with `annals.py`, the source over HTTP.
"""
