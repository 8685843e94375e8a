"""Old states of the log outside the database: what is there, how it is read, and how states move.

Writing segments belongs to projections/segments.
"""
