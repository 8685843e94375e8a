"""Which subscriptions an event matches."""
