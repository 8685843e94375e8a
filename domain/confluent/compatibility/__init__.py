"""Verdicts about changes of schemas as Confluent's registry gives them, one file a type, and the levels.

The verdicts of the xRegistry API are in `domain/formats`; the two differ where users of each expect it (CSR-805).
"""
