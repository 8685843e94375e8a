"""Commands in, events out; rows of the specification are in tests/spec/."""
