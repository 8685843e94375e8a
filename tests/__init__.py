"""Tests: a folder for each room of the product, then what is about several rooms, and what tests share.

spec/ and conformance/ hold the rules of the specifications, end_to_end/ runs several rooms as processes, data/ has
documents, support/ helpers.
"""
