"""Schema formats, one folder or file each, compared with other implementations."""
