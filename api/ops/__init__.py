"""Endpoints for operators and other registries: health, metrics, discovery, and the table of the server's own paths.

Settings and start are in `api/settings/settings.py` and `api/app.py`.
Begin with `health.py`.
"""
