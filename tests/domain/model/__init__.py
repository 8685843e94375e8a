"""The registry model: compiled, compared, narrowed, and what values it takes."""
