"""Decisions, models, formats and small languages: no I/O, one folder for each folder of `domain/`."""
