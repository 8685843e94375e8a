"""State about callers beside the log."""
