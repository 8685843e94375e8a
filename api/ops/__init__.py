"""What operators and other registries ask a server: health, metrics, discovery.

Settings and start are in `api/settings/settings.py` and `api/app.py`.
Begin with `health.py`.
"""
