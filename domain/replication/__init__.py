"""Replication links: their source or target, their scope, and their documents.

Who may write copies, and what happens to foreign interactions, is in `decisions/replication`.
Begin with `link.py`.
"""

from typing import Final

#: The private member of a Group or a Resource that a link without a log delivered: the link's id.
LINK: Final = "link"
