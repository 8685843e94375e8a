"""Messages and endpoints: resolved definitions, matching, findings.

Their rules are in `domain/messaging`.
Begin with `definitions.py`.
"""
