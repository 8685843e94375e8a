"""Confluent Schema Registry's API: its paths, requests and answers, over the same commands and read model.

Its rules are in `domain/confluent`, its decisions in `domain/decisions/confluent`. Begin with `routes.py`, which has
the paths, then `reading.py` and `writing.py`.
"""
