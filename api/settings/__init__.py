"""Settings from flags, the environment and `.env`, checked before anything is opened.

The meaning of a setting belongs to the folder that uses it.
Begin with `settings.py`.
"""
