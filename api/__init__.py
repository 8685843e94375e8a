"""Wire formats: one folder for each HTTP surface, and the command line.

Rules of the registry belong to `domain`; tables and views belong to `commands` and `projections`.
Begin with `app.py`, which puts the parts together, then `server/dispatch.py`.
"""
