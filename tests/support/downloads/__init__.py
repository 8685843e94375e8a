"""What tests bring from Maven, npm and PyPI, once."""
