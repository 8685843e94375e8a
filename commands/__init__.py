"""The write side: the log and the one road into it."""
