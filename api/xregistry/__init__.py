"""The xRegistry API: paths of the registry, its model and its capabilities.

HTTP that other surfaces share is in `api/http`.
Begin with `routes.py`, then `reading.py` and `writing.py`.
"""
