"""One surface of the HTTP API per file."""
