"""Tokens and the handshake of webhooks."""
