"""What Spark computes from a log; in this folder rebuilds, events and console verbs."""
