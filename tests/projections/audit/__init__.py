"""The audit trail, and hashes of parts of the tree."""
