"""Rules for all requests: limits, headers, browsers, connections, streamed responses."""
