"""The API of the live model as OpenAPI 3.1, and its readable form."""
