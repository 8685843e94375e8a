"""xRegistry events and their feed."""
