"""The registry's API as OpenAPI, for the model in force.

Helpers that all surfaces use to describe their paths are in `api/openapi`.
Begin with `document.py`.
"""
