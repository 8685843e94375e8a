"""Helpers for OpenAPI 3.1 documents: builders, problems, content coding, and the HTML page of the API.

The paths of a surface are described in its folder, those of the model in `api/xregistry/openapi`.
Begin with `builders.py`.
"""
