"""Read connections and queries on SQLite and PostgreSQL.

Tables belong to the room that fills them.
Begin with `queries.py`.
"""
