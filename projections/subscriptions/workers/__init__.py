"""The tasks that deliver: one SubscriptionWorker for each subscription, and the components that a process shares.

Decisions are in `decisions`, protocols in `sinks`.
Begin with `deliverer.py` and `subscription_worker.py`.
"""
