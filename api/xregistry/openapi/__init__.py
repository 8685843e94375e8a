"""The registry's API as OpenAPI, for the model in force.

Pieces that all surfaces describe their paths with are in `api/openapi`.
Begin with `document.py`.
"""
