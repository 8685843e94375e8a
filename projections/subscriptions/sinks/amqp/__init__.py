"""The sink for AMQP 1.0.

The contract of all sinks is `contract.py` of the folder above.
Begin with `sink.py`.
"""
