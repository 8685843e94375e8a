"""CESQL: our own tables, and the published conformance cases."""
