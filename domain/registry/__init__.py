"""The registry's state: entities, and the events that change them.

Commands are in `decisions`; one change while it is decided is in `decisions/changes`.
Begin with `events.py` and `evolve.py`.
"""
