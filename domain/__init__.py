"""The registry as plain values and functions: no I/O, clock, randomness or framework.

Stores and projections are in `commands` and `projections`; they implement the protocols that this folder defines.
Begin with `registry/events.py` and `decisions/decide.py`.
"""
