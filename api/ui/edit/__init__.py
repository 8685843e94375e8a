"""Pages that change entities: the forms to make and edit them, conflicts, deletion, restores.

All rules are the API's: these pages turn forms into its requests, and its refusals into messages at fields. Begin with
`edit_pages.py`.
"""
