"""Copies from and to other schema registries with `annals import` and `annals export`."""
