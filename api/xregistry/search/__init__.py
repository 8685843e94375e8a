"""`/-/search`: finds entities by words.

What matches belongs to `annals.domain.search`, and the index to `annals.projections.search`. Begin with `routes.py`.
"""
