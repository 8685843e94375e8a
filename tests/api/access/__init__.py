"""What a caller sees: lists, feeds, history, façades, and the headers of answers."""
