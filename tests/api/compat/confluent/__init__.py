"""Confluent's API over HTTP, by tables of requests and by real clients."""
