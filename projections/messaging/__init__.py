"""Message definitions and findings, read from the read model.

Their rules are in `domain/messaging`.
Begin with `message_definitions.py`.
"""
