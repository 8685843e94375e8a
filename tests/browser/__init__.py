"""The pages in a real browser: properties of all pages, and sequences of user actions."""
