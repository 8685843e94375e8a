"""The open registry that all surfaces share: store, readers, and the definitions in force.

What a surface does with it belongs to its folder.
Begin with `open_registry.py`.
"""
