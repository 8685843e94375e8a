"""One constraint per file, on one entity while it is written or on a whole change, and what constraints share.

`RULES` in `domain/decisions/decide.py` lists the steps over a whole change.
The definitions of the model are in `domain/model`, checks of messages in `domain/messaging/findings`.
Begin with `complete_resources.py`.
"""
