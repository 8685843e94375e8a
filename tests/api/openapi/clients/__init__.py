"""Programs that use generated clients: each does the same with a registry, and prints as JSON what it has seen."""
