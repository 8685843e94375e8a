"""The OpenAPI document of the registry."""
