"""Searches: queries, words, texts, ranks."""
