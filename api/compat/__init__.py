"""The two legacy APIs, Schema Registry 0.2 and Message Catalog 0.1: their paths, requests and responses.

Their commands and rules are in `domain/compat`, their views in `projections/compat`.
Begin with `openapi.yaml`, which has the paths, then `routes.py`, `reading.py` and `writing.py`.
"""
