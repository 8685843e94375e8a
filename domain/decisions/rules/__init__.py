"""One constraint per file; `RULES` lists those that run over a whole change."""
