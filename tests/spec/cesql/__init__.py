"""CESQL: tables of our own and the published conformance cases."""
