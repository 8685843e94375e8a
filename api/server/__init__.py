"""What one server is made of: the request dispatcher, which API answers at which path, and how callers are known.

The APIs have folders of their own. `api/app.py` puts the parts together.
Begin with `dispatch.py`.
"""
