"""Token renewal and the webhook handshake."""
