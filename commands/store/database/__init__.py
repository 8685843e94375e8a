"""How the store speaks to its database: connections, statements, tables and their migrations.

What the log means belongs one room up.
"""
