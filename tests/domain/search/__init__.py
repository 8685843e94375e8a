"""The searches that queries ask for: words, texts, ranks."""
