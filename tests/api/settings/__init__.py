"""Settings by themselves; tests/api/cli/ tests how the console reads and shows them."""
