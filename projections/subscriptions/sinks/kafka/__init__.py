"""The sink for Kafka.

What all sinks promise is in `contract.py` of the folder above.
Begin with `sink.py`.
"""
