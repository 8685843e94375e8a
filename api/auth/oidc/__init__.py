"""Sign-in at a provider of OpenID Connect: authorization code with PKCE, `state` and `nonce`.

Sessions, which a sign-in begins, are in `api/auth/sessions`; the pages are in `api/ui`.
Begin with `provider.py`.
"""
