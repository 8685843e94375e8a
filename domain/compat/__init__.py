"""What the two older APIs mean by what the registry holds: definitions, their numbers, and where they are published."""
