"""The page that compares documents."""
