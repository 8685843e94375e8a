"""Subjects, texts and verdicts of Confluent's API, without a registry."""
