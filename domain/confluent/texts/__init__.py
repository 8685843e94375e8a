"""Texts of schemas, one file a type: parsing with references, and the canonical, normalized and resolved forms.

They use the parsers of `domain/formats`, whose own verdicts and canonical forms are those of the xRegistry API. Begin
with `contract.py`.
"""
