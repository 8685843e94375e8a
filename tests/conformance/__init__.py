"""Which rules tests cite, the documents made of that, and requests that are wrong in every way."""
