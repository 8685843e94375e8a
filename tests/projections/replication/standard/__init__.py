"""Links that copy through the standard API."""
