"""Sessions of people in browsers: how they begin and end, and who calls with their cookies.

Their rows are in `projections/sessions`; sign-in at a provider is in `api/auth/oidc`.
Begin with `sessions.py`.
"""
