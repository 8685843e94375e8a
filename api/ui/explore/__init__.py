"""Pages that show the registry, its collections and its entities.

Pages that change them belong to `edit`. Begin with `entity_page.py`.
"""
