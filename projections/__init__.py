"""Everything derived from the log, each part disposable and rebuildable."""
