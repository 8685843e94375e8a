"""Replication links: where this registry copies from or to, what of it, and who may write what came over them."""

from typing import Final

#: The private member of a Group or a Resource that came over a link which does not follow a log: the link's id.
LINK: Final = "link"
