"""What protects users of browsers: host names, origins, and headers of stored content.

Who the caller is belongs to `api/auth`.
Begin with `cross_origin.py`.
"""
