"""Pages for people in browsers, made on the server: sign-in, sign-out, and a first page.

Who calls belongs to `api/auth`; headers that protect pages are in `api/http/browsers`.
Begin with `routes.py`.
"""
