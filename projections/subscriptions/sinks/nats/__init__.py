"""The sink for NATS.

What all sinks promise is in `contract.py` of the folder above.
Begin with `sink.py`.
"""
