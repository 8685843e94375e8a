"""The sources from which Spark reads a log."""
