"""Tests of API keys and grants, through HTTP and between processes."""
