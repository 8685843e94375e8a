"""Authentication: who sends a request, by tokens, JWTs, passwords or certificates, one file for each.

What a caller may do is in `domain/access`.
Begin with `callers.py`.
"""
