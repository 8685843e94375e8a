"""Links that follow or push a whole log, over HTTP or Kafka, and the comparison and repair of such copies.

Not here: links that copy single objects (`standard`, `compat`).
Begin with `log_pull.py` and `ingest.py`.
"""
