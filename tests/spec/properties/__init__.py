"""What holds after any history of requests."""
