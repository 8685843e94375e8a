"""Requests of the xRegistry API: parses paths, flags, headers and bodies into commands.

Responses are in `render`.
Begin with `parse.py`.
"""
