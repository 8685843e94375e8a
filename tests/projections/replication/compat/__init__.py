"""Links that copy through the two legacy APIs."""
