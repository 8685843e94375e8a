"""Checks of documents in processes of their own."""
