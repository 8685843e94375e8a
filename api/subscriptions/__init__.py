"""The Subscriptions API: what a subscription looks like to those who manage it, and what they may do with it."""
