"""The log, its tables, and what a store keeps besides."""
