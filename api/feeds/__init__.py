"""Feeds: the log and what it comes to, in order, for readers that go on where they were."""
