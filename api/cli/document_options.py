"""Names the options of a command in refusals of the document that the command builds from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from annals.api.cli.outcome import InvalidInput
from annals.domain.errors.http_errors import InvalidMember
from annals.domain.values.json_pointer import split_pointer


@contextmanager
def options_named(options_by_member: Mapping[str, str]) -> Iterator[None]:
    """Turns the refusal of a member into one of the option that gave its value: `--group /dirs/d: it is ...`.

    options_by_member: an option or an argument for each member of the document. Raises: InvalidInput.
    """
    try:
        yield
    except InvalidMember as error:
        member, *names = split_pointer(error.arguments["pointer"])
        option = " ".join((options_by_member[member], *names))
        raise InvalidInput(f"{option}: {error.arguments['error_detail']}.") from None
