"""How states and documents are compressed in the database.

What they mean belongs one room up.
"""
