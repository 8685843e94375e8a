"""References over HTTP."""
