"""Publishing to Kafka: the log on one topic and the events that it comes to on another, each in order."""
