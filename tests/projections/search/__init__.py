"""The search index: compared with a scan, its blocks and segments, and how servers write it."""
