"""The search index: against a scan, in blocks and segments, behind a server, its plans."""
