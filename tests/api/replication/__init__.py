"""Replication links over HTTP; what they do is in projections/replication/ and end_to_end/replication/."""
