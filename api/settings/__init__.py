"""Settings from flags, the environment and `.env`, checked before anything is opened.

What a setting means for a room belongs to that room.
Begin with `settings.py`.
"""
