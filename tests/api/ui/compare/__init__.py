"""The page that compares."""
