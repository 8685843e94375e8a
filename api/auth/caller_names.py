"""What a caller may be called."""

from __future__ import annotations

import unicodedata
from typing import Final

MAX_LENGTH: Final = 128
#: Names that the registry gives itself, or that stand for more than one caller, and how others of these begin.
RESERVED: Final = frozenset(("console", "anonymous", "anyone", "system"))
RESERVED_PREFIXES: Final = ("link:", "links/", "key:", "claim:", "caller:")
#: Control characters, and halves of surrogate pairs, which no text can be written with.
_REFUSED: Final = frozenset(("Cc", "Cs"))


def check_name(name: object) -> str:
    """The name, if somebody can be called so (ACC-14, ACC-15). Raises: ValueError, which says what is wrong with it."""
    if not isinstance(name, str) or not 0 < len(name) <= MAX_LENGTH:
        raise ValueError(f"the name of a caller is a text of 1 to {MAX_LENGTH} characters")
    if name != name.strip() or any(unicodedata.category(each) in _REFUSED for each in name):
        raise ValueError("the name of a caller has no control characters and no white space at its ends")
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())
    if folded.strip() in RESERVED or folded.strip().startswith(RESERVED_PREFIXES):
        kept = ", ".join((*sorted(RESERVED), *(f"{start}…" for start in RESERVED_PREFIXES)))
        raise ValueError(f'the name "{name}" is reserved, as are {kept} in any letter case; choose another one')
    return name
