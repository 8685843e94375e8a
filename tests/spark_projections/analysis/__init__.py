"""The tables for analysts, and their guide."""
