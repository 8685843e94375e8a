"""The access log: a line per request, and a line with a traceback for each failure of the server.

How lines look and which levels are written belongs to `api/cli/setup/log_config.py`.
Begin with `access_log.py`.
"""
