"""`/-/search` over HTTP."""
