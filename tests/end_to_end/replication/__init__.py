"""Tests of two or more served registries with links between them, which are killed, disconnected and promoted."""
