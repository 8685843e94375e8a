"""Generates the pages of `docs/reference` that the code determines, and holds the hook of the site.

`python -m docs.generate` writes all pages; a file here is one page. Pages that people write do not belong here, and no
product code imports this folder. The rules and their tests have their own generators, in `tests/conformance`.
"""
