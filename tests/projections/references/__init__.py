"""What refers to what, now and in the past, read by an index."""
