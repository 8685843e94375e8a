"""The registry as plain values and functions: no I/O, clock, randomness or framework."""
