"""The sink for webhooks over HTTP.

The contract of all sinks is `contract.py` of the folder above.
Begin with `sink.py`.
"""
