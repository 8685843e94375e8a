"""What becomes of a delivery, without I/O."""
