"""The write side: the log, and the command bus as the only way to write to it.

What is derived from the log belongs to `projections`.
Begin with `command_bus.py`, then `commands/store/log.py`.
"""
