"""Downloads from Maven, npm and PyPI for tests, each only once."""
