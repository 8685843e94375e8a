"""Messages as consumers see them: placeholders, definitions resolved along their bases, and matching."""
