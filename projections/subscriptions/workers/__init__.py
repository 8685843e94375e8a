"""What delivers: one worker for each subscription, and what all of them share in a process.

Decisions are in `decisions`, protocols in `sinks`.
Begin with `deliverer.py` and `subscription_worker.py`.
"""
