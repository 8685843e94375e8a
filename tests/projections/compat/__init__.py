"""What the older APIs have published."""
