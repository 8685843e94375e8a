"""Changes between two documents of one format."""
