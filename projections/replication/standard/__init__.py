"""Links through the standard API: from any xRegistry server, whatever its capabilities, and to one.

Not here: links through legacy APIs (`legacy`) and to logs (the folder above).
Begin with `pull.py` and `push.py`.
"""
