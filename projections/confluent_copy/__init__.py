"""Copies between this registry and other schema registries with Confluent's API: the client, readers, and both ways.

Not here: how a copy is recorded (`domain/decisions/confluent`), and the verbs (`api/cli`).
Begin with `import_run.py`.
"""
