"""Schema formats, a folder or a file each, held against other implementations."""
