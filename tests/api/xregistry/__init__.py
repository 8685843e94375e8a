"""The registry's own API: paths, flags, reading, writing, imports, checks and restoring."""
