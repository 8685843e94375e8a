"""The audit trail as answers: history, interactions and differences, as JSON, NDJSON or CSV."""
