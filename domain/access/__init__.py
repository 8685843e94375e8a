"""Access control: callers and their roles, API keys, and grants.

How a request names its caller is in `api/auth`; which role a command needs is in `domain/decisions/permissions.py`.
Begin with `roles.py`.
"""
