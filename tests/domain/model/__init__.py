"""The registry model: compilation, comparison, constraints of Groups, and the values that it accepts."""
