"""Authentication: bearer tokens of a list and JWTs of an issuer, as callers with roles.

What a caller may do is in `domain/access`.
Begin with `callers.py`.
"""
