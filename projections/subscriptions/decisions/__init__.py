"""Decisions about deliveries, without I/O: from a state and an occurrence to the next state and action.

The stored form is in `state`, the running tasks are in `workers`.
Begin with `delivery_state.py` and `retry.py`.
"""
