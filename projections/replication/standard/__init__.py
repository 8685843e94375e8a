"""Links through the standard API: from any xRegistry server, whatever its capabilities, and to one.

Not here: links through legacy APIs (`compat`) and to logs (`log`).
Begin with `pull.py` and `push.py`.
"""
