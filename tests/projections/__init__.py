"""Everything derived from the log: a folder for each room of `projections/`."""
