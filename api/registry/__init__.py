"""The open registry that all surfaces share: store, readers, and the definitions in force.

How a surface uses it belongs to the folder of the surface.
Begin with `open_registry.py`.
"""
