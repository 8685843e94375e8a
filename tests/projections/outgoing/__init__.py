"""The addresses that the server may connect to, and its end of a WebSocket."""
