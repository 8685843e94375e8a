"""Tests of API keys and grants, over HTTP and between processes."""
