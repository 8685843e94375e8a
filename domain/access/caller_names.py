"""The rules for names of callers."""

from __future__ import annotations

import unicodedata
from typing import Final

MAX_LENGTH: Final = 128
#: Names and name prefixes that the registry uses itself, or that mean more than one caller.
RESERVED: Final = frozenset(("console", "anonymous", "anyone", "system"))
RESERVED_PREFIXES: Final = ("link:", "links/", "key:", "claim:", "caller:")
#: Characters that are not shown, such as joiners, which some scripts need in names.
_INVISIBLE: Final = "Cf"
#: Control characters, ends of lines, and halves of surrogate pairs, which cannot be encoded.
_REFUSED_CATEGORIES: Final = frozenset(("Cc", "Cs", "Zl", "Zp"))


def check_name(name: object) -> str:
    """The name, if a caller may have it (ACC-14, ACC-15). Raises: ValueError with the reason."""
    if not isinstance(name, str) or not 0 < len(name) <= MAX_LENGTH:
        raise ValueError(f"the name of a caller is a text of 1 to {MAX_LENGTH} characters")
    if name != name.strip() or any(unicodedata.category(character) in _REFUSED_CATEGORIES for character in name):
        raise ValueError("the name of a caller has no control characters and no white space at its ends")
    shown = "".join(character for character in name if unicodedata.category(character) != _INVISIBLE)
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", shown).casefold())
    if folded.strip() in RESERVED or folded.strip().startswith(RESERVED_PREFIXES):
        reserved_names = ", ".join(
            (*sorted(RESERVED), *(f"{reserved_prefix}…" for reserved_prefix in RESERVED_PREFIXES))
        )
        raise ValueError(
            f'the name "{name}" is reserved, as are {reserved_names} in any letter case; choose another one'
        )
    return name
