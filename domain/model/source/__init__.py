"""Reads the parts of a modelsource that refer to others: includes, imports, and refined spec-defined attributes.

Not here: building the model from them (`domain/model/compile.py`). Begin with `includes.py`.
"""
