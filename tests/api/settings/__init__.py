"""Settings alone; as the console takes and shows them they are in tests/api/cli/."""
