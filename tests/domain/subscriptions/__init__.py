"""Matching of events against subscriptions."""
