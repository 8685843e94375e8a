"""Wire formats: HTTP and the console."""
