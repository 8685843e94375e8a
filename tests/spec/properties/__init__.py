"""Properties that hold after any history of requests."""
