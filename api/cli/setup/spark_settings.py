"""The class of Spark's settings, for verbs that know all settings but do not start Spark."""

from __future__ import annotations

from annals.spark_projections.session import SparkSettings

__all__ = ["SparkSettings"]
