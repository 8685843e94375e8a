"""The page that imports and exports documents.

Begin with `transfer_page.py`.
"""
