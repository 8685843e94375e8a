"""Helpers for OpenAPI 3.1 documents: the loader of path files, builders, problems, HTML pages, the list at `/-/`.

The paths of a surface are described in the `openapi.yaml` of its folder, those of the model in `api/xregistry/openapi`.
Begin with `path_files.py`.
"""
