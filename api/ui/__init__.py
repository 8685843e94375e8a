"""Pages for people in browsers, made on the server; each is a client of the registry's own API.

Rules belong to that API. Who calls belongs to `api/auth`; headers that protect pages are in `api/http/browsers`.
Begin with `routes.py`.
"""
