"""What changed between two documents of one format."""
