"""Copies from and to other schema registries, by the verbs."""
