"""Messages, templates, findings, and endpoint documents of 1.0-rc2."""
