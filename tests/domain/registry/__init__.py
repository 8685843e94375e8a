"""What events say of an entity besides its values."""
