"""Endpoints for operators and other registries: health, metrics, discovery.

Settings and start are in `api/settings/settings.py` and `api/app.py`.
Begin with `health.py`.
"""
