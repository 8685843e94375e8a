"""Sessions of people in browsers: durable state next to the log, which no rebuild touches.

Who signs in, and the cookie, belong to `api/auth/sessions`.
"""
