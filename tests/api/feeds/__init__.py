"""The feeds of events and of the log."""
