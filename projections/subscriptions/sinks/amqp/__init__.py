"""The sink for AMQP 1.0.

What all sinks promise is in `contract.py` of the folder above.
Begin with `sink.py`.
"""
