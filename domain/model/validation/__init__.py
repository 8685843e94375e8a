"""Checks of attribute values: one check for each type of the model, and the errors that they raise.

Not here: which attributes an entity may have (`domain/model/compiled_attributes.py`). Begin with `values.py`.
"""
