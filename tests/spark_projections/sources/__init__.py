"""Where Spark reads a log from."""
