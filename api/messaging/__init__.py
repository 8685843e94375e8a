"""Messages and endpoints over HTTP: resolved definitions, matching, findings.

Their rules are in `domain/messaging`.
Begin with `definitions.py`.
"""
