"""Plain values that every folder uses: xids, timestamps, JSON text, attribute paths, header values.

Nothing here knows a model or an entity.
Begin with `xid.py`.
"""
