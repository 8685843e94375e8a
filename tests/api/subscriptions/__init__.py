"""Subscriptions over HTTP: rights, secrets, previews, deliveries in the process of the test."""
