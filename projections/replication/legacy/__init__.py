"""Links over the two older APIs: what is there is read and written as any client of theirs does it."""
