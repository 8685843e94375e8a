"""What Spark makes of a log; here rebuilds, events and the console's verbs."""
