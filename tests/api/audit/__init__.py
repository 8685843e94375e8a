"""History, interactions, differences and hashes over HTTP."""
