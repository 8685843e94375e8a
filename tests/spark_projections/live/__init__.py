"""Tables that follow the log."""
