"""Which documents a decision needs checked or compared first, and which of these checks it is expected to need.

Not here: running them (`commands/documents/`) and the formats themselves (`domain/formats/`). Begin with
`document_checks.py`.
"""
