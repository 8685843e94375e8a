"""What the log tells about the past: revisions, interactions, and the difference between two moments."""
