"""Overwrites parts of a document with spaces: imports, and options that only an import could define."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from domain.formats.protobuf.source import ProtoToken


def blank_out(text: str, parts: Iterable[Sequence[ProtoToken]]) -> str:
    """The text with spaces in place of each part's tokens; line breaks stay."""
    done, at = [], 0
    for start, end in sorted((part[0].start, part[-1].end) for part in parts):
        if start >= at:
            done += [text[at:start], re.sub(r"[^\n]", " ", text[start:end])]
            at = end
    return "".join([*done, text[at:]])


def custom_options(tokens: Sequence[ProtoToken]) -> Iterator[Sequence[ProtoToken]]:
    """The tokens of options with a name in parentheses, which an import defines: statements, and members of `[…]`.

    A member includes the comma before or after it. If all members are custom, the brackets are included too.
    """
    index = 0
    while index < len(tokens):
        following = tokens[index + 1].text if index + 1 < len(tokens) else ""
        if tokens[index].text == "option" and following == "(":
            end = _end(tokens, index, ";")
            yield tokens[index : end + 1]
        elif tokens[index].text == "[":
            end = _end(tokens, index + 1, "]")
            yield from _custom_members(tokens, index, end)
        else:
            end = index
        index = end + 1


def _custom_members(tokens: Sequence[ProtoToken], start: int, end: int) -> Iterator[Sequence[ProtoToken]]:
    members: list[tuple[int, int]] = []
    at = start + 1
    while at < end:
        comma = min(_end(tokens, at, ","), end)
        members.append((at, comma))
        at = comma + 1
    custom = [tokens[first].text == "(" for first, _ in members]
    if custom and all(custom):
        yield tokens[start : end + 1]
        return
    kept = False
    for (first, last), painted in zip(members, custom, strict=True):
        if painted:
            yield tokens[first - 1 : last] if kept else tokens[first : last + 1]
        kept = kept or not painted


def _end(tokens: Sequence[ProtoToken], start: int, mark: str) -> int:
    """The index of the mark that ends the current part, ignoring nested brackets; without one, of the last token."""
    depth = 0
    for index in range(start, len(tokens)):
        text = tokens[index].text
        if depth == 0 and text == mark:
            return index
        depth += (text in ("{", "[", "(")) - (text in ("}", "]", ")"))
        if depth < 0:
            return index
    return len(tokens) - 1
