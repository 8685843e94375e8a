"""Files with callers or certificates: their content follows their changes, and a metric shows broken ones.

`periodic_tasks.py` checks them. What a file contains belongs to the authenticator that reads it.
Begin with `watched_files.py`.
"""
