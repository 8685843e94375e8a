"""What the legacy APIs publish."""
