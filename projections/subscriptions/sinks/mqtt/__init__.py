"""The sink for MQTT 3 and 5.

The contract of all sinks is `contract.py` of the folder above.
Begin with `sink.py`.
"""
