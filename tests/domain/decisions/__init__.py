"""The decision functions: commands in, events out. Rows of the specification are in tests/spec/."""
