"""The stored state of deliveries."""
