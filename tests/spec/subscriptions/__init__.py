"""Filters and protocol settings of subscriptions."""
