"""Decisions about deliveries, without I/O: from the state and what happened to the next state and action.

What is stored is in `state`, what is done in `workers`.
Begin with `delivery_state.py` and `retry.py`.
"""
