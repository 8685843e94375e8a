"""What verbs set up before their work: log lines, and the knowledge of all settings.

The settings of the registry themselves are in `api/settings`.
Begin with `log_config.py`.
"""
