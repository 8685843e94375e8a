"""Links through the two legacy APIs. They use only what any client of these APIs can use.

Not here: links to servers of the standard API (`standard`) and to logs (`log`).
Begin with `mirror.py` to pull and `sender.py` to push.
"""
