"""Links that copy through the two older APIs."""
