"""The two legacy APIs in terms of the registry: definitions, their numbers, and the URIs that publish them.

Belongs here: id and URI mapping, format names, publications, message definitions (`catalog/`). No I/O, no HTTP.
Begin with `legacy_apis.py`, which describes both APIs, then `publications.py`.
"""
