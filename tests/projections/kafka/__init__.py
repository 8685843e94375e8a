"""Publishing the log to Kafka, with a real broker."""
