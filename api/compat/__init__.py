"""The two older APIs, Schema Registry 0.2 and Message Catalog 0.1, over the same commands and read model."""
