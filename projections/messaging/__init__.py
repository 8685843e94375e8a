"""Message definitions and findings as the read model has them.

Their rules are in `domain/messaging`.
Begin with `message_definitions.py`.
"""
