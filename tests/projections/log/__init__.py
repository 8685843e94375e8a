"""The log as readers and followers see it."""
