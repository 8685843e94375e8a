"""The same projections over the full log, in Spark."""
