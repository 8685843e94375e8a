"""The registry's state: entities, the events that change them, and one change while it is decided.

What a command means is in `decisions`; the rules that a change must keep are in `decisions/rules`.
Begin with `events.py` and `evolve.py`, then `change_set.py`.
"""
