"""Proof that a log is what was once written."""
