"""The index that finds entities by words: its tables, what keeps it at the end of the log, and the search itself.

It answers what `annals.domain.search.matching` says, without reading all entities. It is an index of its own, equal on
SQLite and PostgreSQL, whose databases store its blocks.
Begin with `search.py` and `index_writer.py`.
"""
