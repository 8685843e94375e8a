"""Helpers for OpenAPI 3.1 documents: the loader of path files, builders, problems, and the HTML page of the API.

The paths of a surface are described in the `openapi.yaml` of its folder, those of the model in `api/xregistry/openapi`.
Begin with `path_files.py`.
"""
