"""Replication links over HTTP; projections/replication/ and end_to_end/replication/ test what links copy."""
