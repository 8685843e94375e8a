"""The pages of docs/: those that are generated are up to date, and the site can be built from all of them."""
