"""HTTP for all surfaces: requests, responses, limits, conditions, compression, proxies, errors.

Paths and bodies of one surface belong to its folder.
Begin with `request.py` and `response.py`; `api/server/dispatch.py` uses them.
"""
