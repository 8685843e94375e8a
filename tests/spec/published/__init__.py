"""Evolution of schemas, tested with documents that the projects of the formats publish."""
