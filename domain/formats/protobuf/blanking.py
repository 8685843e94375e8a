"""Overwrites parts of a document with spaces: imports, and options that only an import could define."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from annals.domain.formats.protobuf.source import ProtoToken


def blank_out(text: str, parts: Iterable[Sequence[ProtoToken]]) -> str:
    """The text with spaces in place of each part's tokens; line breaks stay."""
    pieces, offset = [], 0
    for start, end in sorted((part[0].start, part[-1].end) for part in parts):
        if start >= offset:
            pieces += [text[offset:start], re.sub(r"[^\n]", " ", text[start:end])]
            offset = end
    return "".join([*pieces, text[offset:]])


def custom_options(tokens: Sequence[ProtoToken]) -> Iterator[Sequence[ProtoToken]]:
    """The tokens of options with a name in parentheses, which an import defines: statements, and members of `[…]`.

    A member includes the comma before or after it. If all members are custom, the brackets are included too.
    """
    index = 0
    while index < len(tokens):
        next_text = tokens[index + 1].text if index + 1 < len(tokens) else ""
        if tokens[index].text == "option" and next_text == "(":
            end = _part_end(tokens, index, ";")
            yield tokens[index : end + 1]
        elif tokens[index].text == "[":
            end = _part_end(tokens, index + 1, "]")
            yield from _custom_members(tokens, index, end)
        else:
            end = index
        index = end + 1


def _custom_members(tokens: Sequence[ProtoToken], start: int, end: int) -> Iterator[Sequence[ProtoToken]]:
    members: list[tuple[int, int]] = []
    index = start + 1
    while index < end:
        comma = min(_part_end(tokens, index, ","), end)
        members.append((index, comma))
        index = comma + 1
    custom_flags = [tokens[first].text == "(" for first, _ in members]
    if custom_flags and all(custom_flags):
        yield tokens[start : end + 1]
        return
    has_kept = False
    for (first, last), is_custom in zip(members, custom_flags, strict=True):
        if is_custom:
            yield tokens[first - 1 : last] if has_kept else tokens[first : last + 1]
        has_kept = has_kept or not is_custom


def _part_end(tokens: Sequence[ProtoToken], start: int, end_mark: str) -> int:
    """The index of the mark that ends the current part, ignoring nested brackets; without one, of the last token."""
    depth = 0
    for index in range(start, len(tokens)):
        text = tokens[index].text
        if depth == 0 and text == end_mark:
            return index
        depth += (text in ("{", "[", "(")) - (text in ("}", "]", ")"))
        if depth < 0:
            return index
    return len(tokens) - 1
