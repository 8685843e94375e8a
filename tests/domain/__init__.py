"""Decisions, models, formats and small languages: no I/O, a folder for each room of `domain/`."""
