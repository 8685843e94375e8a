"""`/-/compare`: two Versions, or one at two moments, compared by the meaning of their documents.

The comparison itself is in `domain/formats/changes`; attributes are compared by `/-/diff`.
Begin with `routes.py`, then `sides.py`.
"""
