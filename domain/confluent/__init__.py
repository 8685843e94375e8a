"""Confluent Schema Registry's API in terms of the registry: subjects, texts, ids, settings and verdicts.

Belongs here: rules without I/O or HTTP. A subject is a Resource in `schemas`, its versions are Versions, a context is a
Group of `schemagroups`. Begin with `subjects.py`, then `facts.py` and `schema_versions.py`.
"""
