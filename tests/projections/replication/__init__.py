"""Links in the process of the test, and their parts; served registries are in tests/end_to_end/replication/."""
