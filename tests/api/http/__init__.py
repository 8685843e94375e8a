"""What holds for any request: limits, headers, browsers, connections, answers that are made while they are sent."""
