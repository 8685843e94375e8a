"""The sink for MQTT 3 and 5.

What all sinks promise is in `contract.py` of the folder above.
Begin with `sink.py`.
"""
