"""Requests of the xRegistry API, taken apart: paths, flags, headers, bodies as commands.

Answers are in `render`.
Begin with `parse.py`.
"""
