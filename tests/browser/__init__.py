"""The pages in a real browser: what holds on all of them, and journeys."""
