"""Access control: callers and their roles.

How a request names its caller is in `api/auth`; which role a command needs is in `decisions/permissions.py`.
Begin with `roles.py`.
"""
