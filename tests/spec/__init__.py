"""Rules of the specifications as tables of rows, and the tests that run them."""
