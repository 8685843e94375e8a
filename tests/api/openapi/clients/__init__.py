"""Programs that use generated clients: each sends the same requests to a registry, and prints the results as JSON."""
