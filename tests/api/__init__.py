"""The wire formats: a folder for each room of `api/`."""
