"""One constraint per file; `RULES` in `decide.py` lists those that run over a whole change.

The definitions of the model are in `domain/model`, checks of messages in `domain/messaging/findings`.
Begin with `complete_resources.py`.
"""
