"""Schema Registry 0.2 and Message Catalog 0.1 over HTTP."""
