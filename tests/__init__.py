"""Tests: a folder for each top-level folder of the product, and folders for tests of several of them.

spec/ and conformance/ have the rules of the specifications, end_to_end/ runs several processes, data/ has documents,
support/ has helpers.
"""
