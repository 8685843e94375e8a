"""Who may do what: callers with roles, and what a command needs of them.

How a request names its caller is in `api/auth`.
Begin with `roles.py`.
"""
