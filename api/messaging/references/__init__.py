"""What refers to what, over HTTP.

The references themselves are in `projections/references`.
Begin with `routes.py`.
"""
