"""The data of an entity in events in addition to its attributes."""
