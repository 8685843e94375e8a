"""Resolved and matched messages, and findings, over HTTP."""
