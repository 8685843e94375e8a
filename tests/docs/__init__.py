"""The pages of docs/: guides do what they say, generated pages are up to date, and the site can be built."""
