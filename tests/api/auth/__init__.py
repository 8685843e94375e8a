"""Authentication of callers, and their rights and limits."""
