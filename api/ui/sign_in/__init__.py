"""Sign-in and sign-out in browsers, and the paths that a browser goes to afterwards.

Who calls, and what a session is, belongs to `api/auth`. Begin with `login.py`.
"""
