"""The REST read model computed by Spark: its rows, and how they replace those of the registry's database.

Tables for analysts belong to `analysis` and `lake`.
"""
