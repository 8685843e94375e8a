"""Tables that other programs read."""
