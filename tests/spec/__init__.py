"""Rules of the specifications as tables, and the tests that run the rows of the tables."""
