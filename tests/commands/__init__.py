"""The write side; here the command bus, in folders what `commands/` has."""
