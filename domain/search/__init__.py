"""What a search finds: the words of a text, the texts of an entity, the query, and which entities match in which rank.

Pure functions, by which a plain scan over all entities answers a query. The index in `projections/search` answers the
same. Begin with `query.py` and `matching.py`.
"""
