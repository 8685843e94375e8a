"""Messages as consumers see them: placeholders, definitions resolved along their bases, and matching.

The rules that find errors in them are in `findings`; endpoints of older documents are in `rc2`.
Begin with `resolve.py` and `effective_messages.py`.
"""
