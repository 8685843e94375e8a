"""`/-/compare`."""
