"""OpenAPI."""
