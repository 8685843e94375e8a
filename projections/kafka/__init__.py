"""Publishes to Kafka: the log on one topic and the events derived from it on another, each in order.

Kafka sinks of subscriptions belong to `projections/subscriptions/sinks`.
Begin with `publisher.py` and `records.py`.
"""
