"""Read connections and queries on SQLite and PostgreSQL.

Each table is defined in the folder that fills it.
Begin with `drivers.py`.
"""
