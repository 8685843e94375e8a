"""One change while it is decided: drafts of entities, and the events that result from them.

What a command does to a change is in the folder above.
Begin with `change_set.py`.
"""
