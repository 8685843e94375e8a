"""Names the options of a command in refusals of the document that the command builds from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from annals.api.cli.outcome import InvalidInput, UsageError
from annals.domain.errors.http_errors import InvalidMember
from annals.domain.values.json_pointer import split_pointer

#: Codes of values that are wrong whatever the registry has. Others are about its state, such as a name that is taken.
_WRONG_VALUE_CODES: Final = frozenset(("value", "type", "required", "unknown", "filter", "plaintext"))


@contextmanager
def options_named(options_by_member: Mapping[str, str]) -> Iterator[None]:
    """Turns the refusal of a member into one of the option that gave its value: `--group /dirs/d: it is ...`.

    options_by_member: an option or an argument for each member of the document, or for `member/member` within one.
    Raises: UsageError for a value that is wrong by itself, else InvalidInput.
    """
    try:
        yield
    except InvalidMember as error:
        kind = UsageError if error.extensions["code"] in _WRONG_VALUE_CODES else InvalidInput
        option = _option_at(split_pointer(error.arguments["pointer"]), options_by_member)
        raise kind(f"{option}: {error.arguments['error_detail']}.") from None


def _option_at(steps: Sequence[str], options_by_member: Mapping[str, str]) -> str:
    """The option at a pointer, with the names below it. Numbers in lists are left out: nobody has typed them."""
    length = 2 if "/".join(steps[:2]) in options_by_member else 1
    names = (step for step in steps[length:] if not step.isdecimal())
    return " ".join((options_by_member["/".join(steps[:length])], *names))
